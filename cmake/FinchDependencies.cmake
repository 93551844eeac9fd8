# The libraries that Finch uses. tools/install.sh installs them, and README.md describes the purpose of each.
find_package(MPI REQUIRED COMPONENTS C)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(NLopt REQUIRED)
if(BUILD_TESTING)
  find_package(doctest REQUIRED)
endif()

# oneDNN 2 (2.6 or later) or 3. The CMake package of Debian's oneDNN requires OpenCL development files. Finch uses only the CPU part, so
# it links the library file.
find_path(FINCH_DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(FINCH_DNNL_LIBRARY dnnl REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
add_library(finch_dnnl INTERFACE)
target_include_directories(finch_dnnl SYSTEM INTERFACE ${FINCH_DNNL_INCLUDE_DIR})
target_link_libraries(finch_dnnl INTERFACE ${FINCH_DNNL_LIBRARY} OpenMP::OpenMP_CXX)

# Eigen's headers cause compiler warnings, so they are included as system headers.
add_library(finch_eigen INTERFACE)
get_target_property(eigen_headers Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(finch_eigen SYSTEM INTERFACE ${eigen_headers})

# RapidJSON consists of headers, and its CMake package only sets their folder.
find_path(FINCH_RAPIDJSON_INCLUDE_DIR rapidjson/reader.h REQUIRED)
add_library(finch_rapidjson INTERFACE)
target_include_directories(finch_rapidjson SYSTEM INTERFACE ${FINCH_RAPIDJSON_INCLUDE_DIR})

add_library(finch_mpi INTERFACE)
target_link_libraries(finch_mpi INTERFACE MPI::MPI_C)
target_compile_definitions(finch_mpi INTERFACE OMPI_SKIP_MPICXX)

add_library(finch_hdf5_library INTERFACE)
target_include_directories(finch_hdf5_library SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(finch_hdf5_library INTERFACE ${HDF5_C_LIBRARIES})
