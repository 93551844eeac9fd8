#include "finch/comm/version.hpp"

#include "finch/comm/mpi.hpp"

#include <algorithm>
#include <array>

namespace finch::comm {

MpiVersion mpi_version() {
    MpiVersion version;
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    FINCH_MPI(MPI_Get_library_version(text.data(), &length));
    version.library.assign(text.data(), static_cast<std::size_t>(length));
    version.library.resize(std::min(version.library.find_first_of(",\n"), version.library.size()));
    int threading = MPI_THREAD_SINGLE;
    FINCH_MPI(MPI_Query_thread(&threading));
    version.threading = threading == MPI_THREAD_MULTIPLE     ? "multiple"
                        : threading == MPI_THREAD_SERIALIZED ? "serialized"
                        : threading == MPI_THREAD_FUNNELED   ? "funneled"
                                                             : "single";
    version.ranks = size_of(MPI_COMM_WORLD);
    return version;
}

}  // namespace finch::comm
