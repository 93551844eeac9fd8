#pragma once

#include "finch/data/dataset.hpp"

#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

namespace finch::test {

/// The same data sets, but the training pixels are in a file. Each rank has its own file.
class InFile {
public:
    explicit InFile(const data::Datasets& whole) : sets_(whole) {
        data::Dataset& set = sets_.training;
        std::ofstream file(path(), std::ios::binary);
        file.write(reinterpret_cast<const char*>(set.pixels.data()), static_cast<std::streamsize>(set.pixels.size()));
        file.close();
        const pixels::Place place{.stride = set.bytes_per_image(), .images = set.samples()};
        set.store = std::make_shared<pixels::Store>(
            set.image_size(), std::vector<pixels::Piece>{{.path = path().string(), .place = place}});
        set.pixels = {};
    }
    [[nodiscard]] const data::Datasets& sets() const { return sets_; }
    void cut_short() const { std::filesystem::resize_file(path(), 0); }

private:
    [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "pixels"; }

    testing::TemporaryFolder folder_;
    data::Datasets sets_;
};

}  // namespace finch::test
