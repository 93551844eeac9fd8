#include "finch/store/model_file.hpp"

#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"

#include <span>

namespace finch::store {
namespace {

constexpr std::int64_t version = 1;
constexpr const char* record_name = "individual";  ///< the individual as bytes, for Finch itself

}  // namespace

void write_model(const std::filesystem::path& path, const ModelFile& model) {
    hdf5::write_file(path, [&](hid_t file) {
        const search::Individual& individual = model.individual;
        hdf5::write_attribute(file, "format", std::string("finch model"));
        hdf5::write_attribute(file, "version", version);
        hdf5::write_attribute(file, "individual", to_text(individual.id));
        hdf5::write_attribute(file, "genome", model.genome);
        hdf5::write_attribute(file, "loss", individual.loss);
        hdf5::write_attribute(file, "accuracy", individual.accuracy);
        Bytes bytes;
        search::write_individual(individual, true, bytes);
        std::vector<std::uint8_t> raw(bytes.size());
        std::memcpy(raw.data(), bytes.data(), bytes.size());
        hdf5::write_array(file, {record_name, {static_cast<std::int64_t>(raw.size())}, std::move(raw)});
        for (const NamedArray& array : model.arrays) {
            hdf5::write_array(file, array);
        }
    });
}

std::optional<ModelFile> read_model(const std::filesystem::path& path, std::vector<std::string>& problems) {
    const auto file = hdf5::open_file_or_previous(path, problems);
    if (!file) {
        return std::nullopt;
    }
    try {
        ModelFile model;
        model.genome = hdf5::read_text_attribute(file->get(), "genome");
        for (NamedArray& array : hdf5::read_arrays(file->get())) {
            if (array.name == record_name) {
                const auto& raw = std::get<std::vector<std::uint8_t>>(array.values);
                ByteReader reader(std::as_bytes(std::span(raw)));
                model.individual = search::read_individual(reader);
            } else {
                model.arrays.push_back(std::move(array));
            }
        }
        return model;
    } catch (const Error& error) {
        problems.push_back(path.string() + ": " + error.what());
        return std::nullopt;
    }
}

void remove_model(const std::filesystem::path& path) {
    std::error_code none;
    for (const char* suffix : {"", ".previous", ".new"}) {
        std::filesystem::remove(path.string() + suffix, none);
    }
}

}  // namespace finch::store
