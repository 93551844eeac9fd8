#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace finch::cluster {

/// How a rank ended that did not end in order. `external`: from outside, by a signal that asks for a stop, or by a
/// fault elsewhere. `own_fault`: by a fault of its own.
enum class ExitCause : std::uint32_t { none, external, own_fault };

/// The note that one rank left.
struct EndNote {
    std::uint32_t restart = 0;  ///< start of the run
    std::int32_t worker = 0;
    ExitCause kind = ExitCause::none;
};

/// From now on this rank can leave a note in its cell of `path`, which all ranks share, and SEGV, BUS, ILL, FPE and
/// ABRT leave one, then do what they did before. Throws ApiError if the file cannot be opened.
void keep_end_notes(const std::filesystem::path& path, int rank, std::uint32_t restart, std::int32_t worker);

/// Leaves the note of this rank, the first one only; nothing before keep_end_notes(). Async-signal-safe.
void note_end(ExitCause kind) noexcept;

/// The notes of the start `restart`, of any rank. Nothing if there is no such file.
[[nodiscard]] std::vector<EndNote> read_end_notes(const std::filesystem::path& path, std::uint32_t restart);

}  // namespace finch::cluster
