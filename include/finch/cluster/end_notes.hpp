#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace finch::cluster {

/// The cause if a rank did not end in an orderly way. `external`: a stop signal from outside, or a fault of another
/// rank. `own_fault`: a fault of this rank.
enum class ExitCause : std::uint32_t { none, external, own_fault };

/// The end note of one rank.
struct EndNote {
    std::uint32_t restart = 0;  ///< number of the start
    std::int32_t worker = 0;
    ExitCause kind = ExitCause::none;
};

/// Enables the end note of this rank. The note goes to the rank's cell of the file `path`, which all ranks share. The
/// signals SEGV, BUS, ILL, FPE and ABRT then write a note before their previous action runs. Throws ApiError if the
/// file cannot be opened.
void keep_end_notes(const std::filesystem::path& path, int rank, std::uint32_t restart, std::int32_t worker);

/// Writes the end note of this rank. Does nothing if the rank already wrote a note, or before keep_end_notes().
/// Async-signal-safe.
void note_end(ExitCause kind) noexcept;

/// Returns the notes that ranks wrote in the start `restart`. Returns nothing if the file does not exist.
[[nodiscard]] std::vector<EndNote> read_end_notes(const std::filesystem::path& path, std::uint32_t restart);

}  // namespace finch::cluster
