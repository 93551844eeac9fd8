#pragma once

#include "finch/base/named_array.hpp"
#include "finch/base/replace.hpp"
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
    std::uint64_t run = 0;               ///< the run's number; 0: not recorded (format 1)
    std::vector<std::string> classes{};  ///< their names; empty: the data have none
};

void write_model(const std::filesystem::path& path, const ModelFile& model);

/// Takes the predecessor where the file is damaged; nothing if neither can be read, with the reasons in `problems`.
[[nodiscard]] std::optional<ModelFile> read_model(const std::filesystem::path& path, std::vector<std::string>& problems,
                                                  OnDamage on_damage);

/// Why a file that lies in the run's directory under the name of `individual` is not to be used, in words; empty if
/// it is to be. Ids begin anew with every run, so that files of another one can have the same names.
[[nodiscard]] std::string why_foreign(const ModelFile& model, std::uint64_t run, const search::Individual& individual);

/// Removes a file, its predecessor and what an interrupted write left of it. Where one of these cannot be removed, the
/// file itself stays, so that what is left is found by its name.
void remove_model(const std::filesystem::path& path);

}  // namespace finch::store
