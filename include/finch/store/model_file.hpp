#pragma once

#include "finch/base/named_array.hpp"
#include "finch/search/individual.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finch::store {

/// A model or a snapshot: an individual and named arrays, written atomically. Weights stand under PyTorch's names.
struct ModelFile {
    search::Individual individual;
    std::string genome;  ///< in words
    NamedArrays arrays;
    std::uint64_t run = 0;  ///< the run's number; 0: not recorded (format 1)

    /// Whether this is `other` of the run `number`, trained to the same loss or not yet.
    [[nodiscard]] bool is(const search::Individual& other, std::uint64_t number) const;
};

void write_model(const std::filesystem::path& path, const ModelFile& model);

/// Takes the predecessor where the file is damaged; nothing where neither can be read, with the reasons in `problems`.
[[nodiscard]] std::optional<ModelFile> read_model(const std::filesystem::path& path,
                                                  std::vector<std::string>& problems);

/// Removes a file, its predecessor and what an interrupted write left of it.
void remove_model(const std::filesystem::path& path);

}  // namespace finch::store
