# What thompson is built on, under any of the names that systems give it: pkg-config first, then CMake's own search.
# Every dependency NAME becomes a target `thompson_NAME`; what was found is kept for the summary and for the installed
# pkg-config file and CMake package.
include(CheckCSourceCompiles)
include(CheckSymbolExists)
find_package(PkgConfig)

set(thompson_summary)   # lines: "what: where it was found"
set(thompson_static)    # linker flags that programs need which link libthompson.a

function(thompson_note what text)
  string(LENGTH "${what}" length)
  math(EXPR blanks "14 - ${length}")
  string(REPEAT " " ${blanks} gap)
  set(thompson_summary ${thompson_summary} "  ${what}${gap}${text}" PARENT_SCOPE)
endfunction()

# thompson_dependency(NAME [OPTIONAL] PKG module... [HEADER file] [LIBRARY name...] [HINT debian-package] [PROGRAM])
#   HEADER and LIBRARY are looked for where pkg-config knows none of the modules. PROGRAM: the library does without it.
function(thompson_dependency name)
  cmake_parse_arguments(arg "OPTIONAL;PROGRAM" "HEADER;HINT" "PKG;LIBRARY" ${ARGN})
  string(TOUPPER ${name} upper)
  add_library(thompson_${name} INTERFACE IMPORTED)
  if(PkgConfig_FOUND AND arg_PKG AND NOT ${upper}_LIBRARY)
    pkg_search_module(${upper} QUIET IMPORTED_TARGET ${arg_PKG})
  endif()
  if(TARGET PkgConfig::${upper})
    target_link_libraries(thompson_${name} INTERFACE PkgConfig::${upper})
    set(found "${${upper}_MODULE_NAME} ${${upper}_VERSION} (pkg-config)")
    set(flags ${${upper}_LDFLAGS})
  else()
    find_path(${upper}_INCLUDE_DIR ${arg_HEADER})
    set(found ${${upper}_INCLUDE_DIR})
    if(arg_LIBRARY)
      find_library(${upper}_LIBRARY NAMES ${arg_LIBRARY})
      set(found ${${upper}_LIBRARY})
    endif()
    if(NOT ${upper}_INCLUDE_DIR OR NOT found)
      if(arg_OPTIONAL)
        set(THOMPSON_HAS_${upper} OFF PARENT_SCOPE)
        return()
      endif()
      message(FATAL_ERROR "${name} is needed and was not found: neither pkg-config (${arg_PKG}) nor ${arg_HEADER} ${arg_LIBRARY}. "
                          "On Debian it is in ${arg_HINT}; elsewhere set CMAKE_PREFIX_PATH or PKG_CONFIG_PATH, "
                          "or ${upper}_INCLUDE_DIR and ${upper}_LIBRARY. docs/install.md lists packages for other systems.")
    endif()
    target_include_directories(thompson_${name} SYSTEM INTERFACE ${${upper}_INCLUDE_DIR})
    target_link_libraries(thompson_${name} INTERFACE ${${upper}_LIBRARY})
    set(flags ${${upper}_LIBRARY})
  endif()
  set(THOMPSON_HAS_${upper} ON PARENT_SCOPE)
  if(NOT arg_PROGRAM)
    set(thompson_static ${thompson_static} ${flags} PARENT_SCOPE)
  endif()
  thompson_note(${name} "${found}")
  set(thompson_summary ${thompson_summary} PARENT_SCOPE)
endfunction()

# A program with these headers and this body can be linked with these targets.
function(thompson_links result headers body)
  set(CMAKE_REQUIRED_LIBRARIES ${ARGN})
  set(CMAKE_REQUIRED_QUIET ON)
  check_c_source_compiles("${headers}\nint main(void) { ${body} return 0; }" ${result})
endfunction()

# ---- MPI

find_package(MPI REQUIRED COMPONENTS C)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
set(CMAKE_REQUIRED_QUIET ON)
check_symbol_exists(OMPI_MAJOR_VERSION mpi.h THOMPSON_MPI_IS_OPENMPI)
check_symbol_exists(MPICH_VERSION mpi.h THOMPSON_MPI_IS_MPICH)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_QUIET)
set(mpi_name unknown)
if(THOMPSON_MPI_IS_OPENMPI)
  set(mpi_name openmpi)
elseif(THOMPSON_MPI_IS_MPICH)
  set(mpi_name mpich)
endif()
thompson_note(mpi "${mpi_name}, MPI ${MPI_C_VERSION} (${MPI_C_COMPILER})")

# ---- files and texts

thompson_dependency(netcdf PKG netcdf HEADER netcdf.h LIBRARY netcdf HINT libnetcdf-dev)
thompson_dependency(hdf5 PKG hdf5-serial hdf5 hdf5-${mpi_name} HEADER hdf5.h LIBRARY hdf5_serial hdf5 HINT libnetcdf-dev)
thompson_dependency(yaml PKG yaml-0.1 HEADER yaml.h LIBRARY yaml HINT libyaml-dev)
thompson_dependency(jansson PROGRAM PKG jansson HEADER jansson.h LIBRARY jansson HINT libjansson-dev)
thompson_dependency(libcrypto PKG libcrypto HEADER openssl/evp.h LIBRARY crypto HINT libssl-dev)
thompson_dependency(zlib PKG zlib HEADER zlib.h LIBRARY z zlib HINT zlib1g-dev)

# ---- numbers

thompson_dependency(random123 PROGRAM HEADER Random123/philox.h HINT librandom123-dev)
thompson_dependency(sleef PKG sleef HEADER sleef.h LIBRARY sleef HINT libsleef-dev)

# BLAS with its C interface, and LAPACK with its own: one library or several. With BLA_VENDOR given, FindBLAS decides.
if(BLA_VENDOR)
  find_package(BLAS REQUIRED)
  find_path(BLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES blis openblas flexiblas mkl)
  add_library(thompson_blas INTERFACE IMPORTED)
  target_include_directories(thompson_blas SYSTEM INTERFACE ${BLAS_INCLUDE_DIR})
  target_link_libraries(thompson_blas INTERFACE BLAS::BLAS)
  list(APPEND thompson_static ${BLAS_LIBRARIES})
  thompson_note(blas "${BLA_VENDOR}: ${BLAS_LIBRARIES}")
else()
  thompson_dependency(blas PKG openblas flexiblas blis cblas HEADER cblas.h LIBRARY openblas flexiblas blis cblas HINT libopenblas-dev)
endif()
thompson_links(THOMPSON_BLAS_HAS_CBLAS "#include <cblas.h>" "cblas_dgemv(CblasRowMajor, CblasNoTrans, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1);" thompson_blas)
if(NOT THOMPSON_BLAS_HAS_CBLAS)
  find_library(CBLAS_LIBRARY NAMES cblas REQUIRED)
  target_link_libraries(thompson_blas INTERFACE ${CBLAS_LIBRARY})
  list(APPEND thompson_static ${CBLAS_LIBRARY})
endif()
set(THOMPSON_BLAS "${BLA_VENDOR}${BLAS_MODULE_NAME} ${BLAS_VERSION}")
thompson_links(THOMPSON_BLAS_IS_OPENBLAS "#include <cblas.h>" "return *openblas_get_config();" thompson_blas)
find_path(LAPACKE_HEADER lapacke.h PATH_SUFFIXES openblas lapacke lapacke-openblas)
thompson_links(THOMPSON_BLAS_HAS_LAPACKE "int LAPACKE_dpotrf(int, char, int, double *, int);" "LAPACKE_dpotrf(101, 'L', 0, 0, 1);" thompson_blas)
if(THOMPSON_BLAS_HAS_LAPACKE AND LAPACKE_HEADER)
  add_library(thompson_lapacke INTERFACE IMPORTED)
  target_include_directories(thompson_lapacke SYSTEM INTERFACE ${LAPACKE_HEADER})
  thompson_note(lapacke "in blas")
else()
  thompson_dependency(lapacke PKG lapacke HEADER lapacke.h LIBRARY lapacke HINT liblapacke-dev)
endif()

# ---- dense algebra on many ranks: optional

set(THOMPSON_SCALAPACK AUTO CACHE STRING "Matrices spread over ranks by ScaLAPACK: ON, OFF or AUTO (where it is found)")
set_property(CACHE THOMPSON_SCALAPACK PROPERTY STRINGS AUTO ON OFF)
set(THOMPSON_HAS_SCALAPACK OFF)
set(scalapack_found "off: large matrices stay on one rank")
if(THOMPSON_SCALAPACK)
  # By name and not by pkg-config or its CMake package: both of Debian's ask for whichever MPI is the default one.
  get_filename_component(mpi_folder "${MPI_C_COMPILER}" DIRECTORY)
  find_library(SCALAPACK_LIBRARY NAMES scalapack-${mpi_name} scalapack mkl_scalapack_lp64 HINTS ${mpi_folder}/../lib ${MPI_mpi_LIBRARY}/..)
  if(SCALAPACK_LIBRARY)
    find_library(BLACS_LIBRARY NAMES blacs-${mpi_name} mkl_blacs_${mpi_name}_lp64 mkl_blacs_intelmpi_lp64)
    add_library(thompson_scalapack INTERFACE IMPORTED)
    target_link_libraries(thompson_scalapack INTERFACE ${SCALAPACK_LIBRARY} $<$<BOOL:${BLACS_LIBRARY}>:${BLACS_LIBRARY}> thompson_lapacke thompson_blas)
    thompson_links(THOMPSON_SCALAPACK_LINKS "int Csys2blacs_handle(int); void pdgemm_(void);" "Csys2blacs_handle(0); pdgemm_();"
                   thompson_scalapack MPI::MPI_C m)
    set(THOMPSON_HAS_SCALAPACK ${THOMPSON_SCALAPACK_LINKS})
  endif()
  if(THOMPSON_HAS_SCALAPACK)
    set(scalapack_found ${SCALAPACK_LIBRARY})
  elseif(THOMPSON_SCALAPACK STREQUAL AUTO)
    set(scalapack_found "not found for ${mpi_name}: large matrices stay on one rank")
  else()
    message(FATAL_ERROR "THOMPSON_SCALAPACK is ON, but no ScaLAPACK for ${mpi_name} can be linked "
                        "(SCALAPACK_LIBRARY: ${SCALAPACK_LIBRARY}). On Debian it is in libscalapack-${mpi_name}-dev; set SCALAPACK_LIBRARY, or "
                        "THOMPSON_SCALAPACK=OFF.")
  endif()
endif()
thompson_note(scalapack "${scalapack_found}")
