# What `cmake --install` installs in addition to the library (src/library/CMakeLists.txt). Nothing installed refers to the build folder.
install(TARGETS thompson RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# Manual pages, printed by the program from the tables that also make --help; a cross build without an emulator has none.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  file(STRINGS src/app/main.c verb_lines REGEX "^    {\"[a-z]+\",")
  set(manual_folder ${CMAKE_CURRENT_BINARY_DIR}/manual)
  set(manual_commands COMMAND ${CMAKE_COMMAND} -E make_directory ${manual_folder}
                      COMMAND thompson --manual > ${manual_folder}/thompson.1)
  set(manual_pages ${manual_folder}/thompson.1)
  foreach(line IN LISTS verb_lines)
    string(REGEX REPLACE "^    {\"([a-z]+)\".*" "\\1" verb "${line}")
    list(APPEND manual_commands COMMAND thompson ${verb} --manual > ${manual_folder}/thompson-${verb}.1)
    list(APPEND manual_pages ${manual_folder}/thompson-${verb}.1)
  endforeach()
  add_custom_command(OUTPUT ${manual_pages} ${manual_commands} DEPENDS thompson COMMENT "Printing the manual pages" VERBATIM)
  add_custom_target(thompson_manual ALL DEPENDS ${manual_pages})
  install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

install(FILES jobs/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME thompson)
install(DIRECTORY analysis/thompson DESTINATION ${CMAKE_INSTALL_LIBDIR}/python3/dist-packages FILES_MATCHING PATTERN "*.py")
# The scripts find the package next to their folders, as in the source tree, through a relative link.
install(DIRECTORY analysis/ DESTINATION ${CMAKE_INSTALL_DATADIR}/thompson/analysis USE_SOURCE_PERMISSIONS FILES_MATCHING PATTERN "*.py" PATTERN "*.css" PATTERN "*.js"
        PATTERN "thompson" EXCLUDE PATTERN "__pycache__" EXCLUDE)
file(RELATIVE_PATH package ${CMAKE_INSTALL_FULL_DATADIR}/thompson/analysis ${CMAKE_INSTALL_FULL_LIBDIR}/python3/dist-packages/thompson)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/package)
file(CREATE_LINK ${package} ${CMAKE_CURRENT_BINARY_DIR}/package/thompson SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/thompson DESTINATION ${CMAKE_INSTALL_DATADIR}/thompson/analysis)
install(DIRECTORY jobs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/thompson/jobs FILES_MATCHING PATTERN "*.yaml" PATTERN "*.sbatch" PATTERN "*.pbs"
        PATTERN "environment.sh")
