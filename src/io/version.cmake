# Write io/version.h: which source, compiler and flags this build is from. Run at build time, not at configure time, so
# that a commit made after `cmake` is named rightly. Works without git and outside a repository (commit "unknown").
#
#   cmake -D SOURCE=DIR -D OUTPUT=FILE -D version=X -D compiler=X -D flags=X -D blas=X -P version.cmake

set(commit unknown)
set(dirty 0)
find_program(git NAMES git)
if(git)
  # An unpacked archive inside somebody else's repository must not take that one's commit.
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-prefix HEAD
                  OUTPUT_VARIABLE answer RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed AND answer MATCHES "^\n([0-9a-f]+)")
    string(SUBSTRING ${CMAKE_MATCH_1} 0 12 commit)
    execute_process(COMMAND ${git} -C ${SOURCE} --no-optional-locks status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changed ERROR_QUIET)
    # The build takes every file in src, so a new one counts as a change.
    execute_process(COMMAND ${git} -C ${SOURCE} ls-files --others --exclude-standard -- src
                    OUTPUT_VARIABLE added ERROR_QUIET)
    if(NOT "${changed}${added}" STREQUAL "")
      set(dirty 1)
    endif()
  endif()
endif()

# These become C strings.
foreach(name version compiler flags blas)
  string(STRIP "${${name}}" ${name})
  string(REGEX REPLACE "[ ;]+" " " ${name} "${${name}}")
  string(REPLACE "\\" "\\\\" ${name} "${${name}}")
  string(REPLACE "\"" "\\\"" ${name} "${${name}}")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.h.in ${OUTPUT} @ONLY)
