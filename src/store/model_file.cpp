#include "finch/store/model_file.hpp"

#include "finch/base/files.hpp"

#include "file_format.hpp"

#include <algorithm>

namespace finch::store {
namespace {

constexpr const char* format_name = "finch model";
/// The HDF5 group that contains the individual. Names of other arrays must not begin with this group's name.
constexpr const char* own_group = "finch/";
constexpr const char* record_name = "finch/individual";
constexpr const char* genome_name = "finch/genome";
constexpr const char* classes_name = "classes";

bool is_own(const NamedArray& array) {
    return array.name.starts_with(own_group);
}

/// Writes the columns of /individuals as attributes of the file, for users and for Python.
void describe(hid_t file, const search::Individual& individual) {
    for_each_column<search::Individual>([&](const Column& column, const auto& get) {
        const auto& value = get(individual);
        using Cell = std::remove_cvref_t<decltype(value)>;
        if constexpr (EnumWithWords<Cell>) {
            hdf5::write_attribute(file, column.name, std::string(word(value)));
        } else if constexpr (std::same_as<Cell, search::Id>) {
            hdf5::write_attribute(file, column.name, value == search::Id{} ? "" : to_text(value));
        } else if constexpr (std::same_as<Cell, std::uint64_t>) {
            hdf5::write_unsigned_attribute(file, column.name, value);
        } else if constexpr (std::integral<Cell>) {
            hdf5::write_attribute(file, column.name, std::int64_t{value});
        } else {
            hdf5::write_attribute(file, column.name, value);
        }
    });
}

/// Returns the individual in the byte format of records, which restores it exactly.
NamedArray array_of(const search::Individual& individual) {
    Bytes bytes;
    write_individual(individual, true, bytes);
    std::vector<std::uint8_t> values(bytes.size());
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return {record_name, {static_cast<std::int64_t>(values.size())}, std::move(values)};
}

search::Individual individual_of(const NamedArray& record, std::int64_t version) {
    const auto* bytes = std::get_if<std::vector<std::uint8_t>>(&record.values);
    if (bytes == nullptr) {
        throw FileError(fmt::format("{} is not made of bytes", record_name));
    }
    ByteReader reader(std::as_bytes(std::span(*bytes)));
    return search::read_individual(reader, static_cast<std::uint16_t>(version));
}

ModelFile read(hid_t file) {
    const std::int64_t version = read_version(file, format_name);
    ModelFile model;
    model.run = hdf5::read_unsigned_attribute(file, "run");
    if (hdf5::has_attribute(file, classes_name)) {
        model.classes = hdf5::read_texts_attribute(file, classes_name);
    }
    model.individual = individual_of(hdf5::read_array(file, record_name), version);
    model.genome = hdf5::read_text(file, genome_name);
    model.arrays = hdf5::read_arrays(file);
    std::erase_if(model.arrays, is_own);
    return model;
}

}  // namespace

void write_model(const std::filesystem::path& path, const ModelFile& model, const Replacing& replacing) {
    if (std::any_of(model.arrays.begin(), model.arrays.end(), is_own)) {
        throw Error(fmt::format("{}: an array's name begins with {}", path.string(), own_group));
    }
    const auto fill = [&](hid_t file) {
        write_format(file, format_name);
        hdf5::write_unsigned_attribute(file, "run", model.run);
        describe(file, model.individual);
        if (!model.classes.empty()) {
            hdf5::write_texts_attribute(file, classes_name, model.classes);
        }
        hdf5::write_text(file, genome_name, model.genome);
        hdf5::write_array(file, array_of(model.individual));
        for (const NamedArray& array : model.arrays) {
            hdf5::write_array(file, array);
        }
    };
    hdf5::write_file(path, fill, replacing);
}

std::optional<ModelFile> read_model(const std::filesystem::path& path, std::vector<std::string>& problems,
                                    OnDamage on_damage) {
    try {
        const auto file = hdf5::open_file_or_previous(path, problems, on_damage);
        return file ? std::optional(read(file->get())) : std::nullopt;
    } catch (const Error& error) {
        if (on_damage == OnDamage::set_aside && dynamic_cast<const StorageError*>(&error) != nullptr) {
            throw;  // a later start reads it: it is not damaged
        }
        problems.push_back(path.string() + ": " + error.what());
        return std::nullopt;
    }
}

NamedArrays read_results(const std::filesystem::path& path, std::uint64_t run) {
    std::vector<std::string> problems;
    try {
        const auto file = hdf5::open_file_or_previous(path, problems, OnDamage::leave);
        if (!file || hdf5::read_unsigned_attribute(file->get(), "run") != run) {
            return {};
        }
        return hdf5::read_arrays(file->get(), [](const std::string& name) {
            return name.starts_with("test/") || name.starts_with("validation/");
        });
    } catch (const Error&) {  // whoever opens the model says what is wrong with it
        return {};
    }
}

std::string why_foreign(const ModelFile& model, std::uint64_t run, const search::Individual& individual) {
    if (model.run != 0 && model.run != run) {
        return fmt::format("it is of another run, {:016x}, not of {:016x}", model.run, run);
    }
    if (model.individual.id != individual.id) {
        return fmt::format("it is of individual {}, not of {}", to_text(model.individual.id), to_text(individual.id));
    }
    if (model.individual.genome != individual.genome) {
        return fmt::format("its individual {} has other genes", to_text(individual.id));
    }
    if (individual.ranks_by_loss() && model.individual.loss != individual.loss) {
        return fmt::format("its individual {} has another loss", to_text(individual.id));
    }
    return "";
}

void remove_model(const std::filesystem::path& path) {
    const std::filesystem::path previous = path.string() + previous_suffix;
    std::error_code problem;
    // The file itself is removed last: if this function is interrupted, its name leads to the remaining files.
    for (const auto& name : {unfinished_name(previous), previous, unfinished_name(path), path}) {
        std::filesystem::remove(name, problem);
        if (problem) {
            return;
        }
    }
}

}  // namespace finch::store
