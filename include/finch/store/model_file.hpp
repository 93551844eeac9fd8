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

/// A model or a snapshot: an individual and named arrays, written atomically. Arrays of weights have PyTorch's names.
struct ModelFile {
    search::Individual individual;
    std::string genome;  ///< as text
    NamedArrays arrays;
    std::uint64_t run = 0;               ///< the run's number; 0: not recorded (format 1)
    std::vector<std::string> classes{};  ///< class names; empty: the data have none
};

void write_model(const std::filesystem::path& path, const ModelFile& model, const Replacing& replacing = {});

/// Reads a model, or its predecessor if the file is damaged. Returns nothing if neither can be read, with the reasons
/// in `problems`.
[[nodiscard]] std::optional<ModelFile> read_model(const std::filesystem::path& path, std::vector<std::string>& problems,
                                                  OnDamage on_damage);

/// Reads the results in a model file of the run: its arrays below "test/" and "validation/". Returns an empty list if
/// there is no such file.
[[nodiscard]] NamedArrays read_results(const std::filesystem::path& path, std::uint64_t run);

/// Returns the reason why `model`, read from a file with the name of `individual`, does not belong to this individual;
/// empty if it does. Ids of individuals start again in every run, so files of another run can have the same names.
[[nodiscard]] std::string why_foreign(const ModelFile& model, std::uint64_t run, const search::Individual& individual);

/// Removes a file, its predecessor, and the files of an interrupted write. The file itself is removed last: if an
/// earlier removal fails, the file stays, and its name leads to the remaining files.
void remove_model(const std::filesystem::path& path);

}  // namespace finch::store
