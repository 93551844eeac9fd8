#include "finch/hdf5/file.hpp"

#include "files.hpp"
#include "support/captured_log.hpp"
#include "support/image_files.hpp"

#include <doctest/doctest.h>
#include <map>

namespace {

using namespace finch;
using namespace finch::test;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// Writes an image whose pixels all have the value `grey`.
void write_image(const fs::path& path, std::uint8_t grey, std::int64_t height = 4, std::int64_t width = 3,
                 std::int64_t channels = 1) {
    fs::create_directories(path.parent_path());
    const images::Image image{
        .height = height,
        .width = width,
        .channels = channels,
        .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * channels), grey)};
    const testing::FileBytes bytes = testing::png_of(image);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void write_text(const fs::path& path) {
    std::ofstream(path) << "no image";
}

data::Options folder_options(const fs::path& folder) {
    return {.kind = data::Kind::folder, .path = folder.string()};
}

std::string problem_in(const data::Options& options) {
    try {
        (void)data::load(options, 1);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

/// Returns the first channel of the first pixel of each image.
std::vector<int> first_pixels(const data::Dataset& set) {
    std::vector<int> firsts;
    for (std::int64_t sample = 0; sample < set.samples(); ++sample) {
        firsts.push_back(set.pixels[static_cast<std::size_t>(sample * set.pixels_per_image())]);
    }
    return firsts;
}

TEST_CASE("folder: classes and files are in the order of their names, in all sets") {
    const TemporaryFolder folder;
    write_image(folder.path() / "Train/dog/b.png", 1);
    write_image(folder.path() / "Train/dog/a.PNG", 2);
    write_image(folder.path() / "Train/cat/more/deep/1", 3);
    write_image(folder.path() / "Train/cat/z.jpg", 4);  // the content decides, not the name
    write_image(folder.path() / "val/dog/1.png", 5);
    write_image(folder.path() / "test/cat/1.png", 6);
    write_image(folder.path() / "test/.cat/1.png", 7);
    write_image(folder.path() / "extra/1.png", 8);
    write_text(folder.path() / "Train/cat/notes.txt");
    write_text(folder.path() / "Train/cat/without");
    write_text(folder.path() / "Train/cat/Thumbs.db");
    fs::create_symlink("nowhere.png", folder.path() / "Train/dog/dead.png");
    fs::create_directory_symlink(folder.path() / "Train", folder.path() / "Train/dog/loop");
    data::Options options = folder_options(folder.path());
    options.validation = data::OwnValidation{};

    const data::Datasets sets = data::load(options, 1);

    CHECK(first_pixels(sets.training) == std::vector{3, 4, 2, 1, 5});
    CHECK(sets.training.labels == std::vector<std::int32_t>{0, 0, 1, 1, 1});
    CHECK(sets.training.validation == std::vector<std::int64_t>{4});
    CHECK(first_pixels(sets.test) == std::vector{6});
    CHECK(sets.training.class_names == std::vector<std::string>{"cat", "dog"});
    CHECK(sets.test.class_names == sets.training.class_names);
    CHECK(sets.training.height == 4);
    CHECK(sets.training.width == 3);
    CHECK(sets.training.channels == 3);
}

TEST_CASE("folder: a folder of classes is a training set; classes may be called train, or test tube") {
    for (const Names& names : {Names{"car", "plane", "train"}, Names{"test tube", "training shoes"}}) {
        const TemporaryFolder folder;
        for (const std::string& name : names) {
            write_image(folder.path() / name / "1.png", 1);
        }

        const data::Datasets sets = data::load(folder_options(folder.path()), 1);

        CHECK(sets.training.class_names == names);
        CHECK(sets.test.samples() == 0);
    }
}

TEST_CASE("folder: the words in the names of folders tell the sets; test images that also train are counted") {
    for (const auto& [training, test] : std::map<std::string, std::string>{{"training_set", "test_set"},
                                                                           {"seg_train/seg_train", "seg_test/seg_test"},
                                                                           {"TrainImages", "TestImages"},
                                                                           {"trainset", "testset"},
                                                                           {"cars_train", "cars_test"},
                                                                           {"train2017", "test2017"},
                                                                           {"data/Training", "data/Test Data"}}) {
        const TemporaryFolder folder;
        for (const std::string name : {"cat", "dog"}) {
            write_image(folder.path() / training / name / "1.png", 1);
            write_image(folder.path() / test / name / "1.png", name == "cat" ? 1 : 2);
        }
        const testing::CapturedLog log;
        const data::Datasets sets = data::load(folder_options(folder.path()), 1);
        CHECK_MESSAGE((first_pixels(sets.training) == std::vector{1, 1}), training);
        CHECK_MESSAGE((first_pixels(sets.test) == std::vector{1, 2}), test);
        CHECK(contains(log.text(), "1 of 2 test images are training or validation images, too"));
    }
}

TEST_CASE("folder: a layout that may be meant in two ways is refused") {
    for (const auto& [problem, folders] : std::map<std::string, Names>{
             {"test_new: may be a test set or a class; expected", {"training_old/a", "training_old/b", "test_new/a"}},
             {"cat/test: is a set within a class; expected test/CLASS", {"cat/train", "cat/test", "dog/train"}},
             {"train_images: has 0 folders and 1 file (1.png); expected a folder", {"train_images", "test_images"}},
             {"testB: is a test set, and so is", {"trainA", "trainB", "testA", "testB"}}}) {
        const TemporaryFolder folder;
        for (const std::string& name : folders) {
            write_image(folder.path() / name / "1.png", 1);
        }

        CHECK_MESSAGE(contains(problem_in(folder_options(folder.path())), problem), problem);
    }
}

TEST_CASE("folder: data.size, data.grey and data.background convert the images") {
    const TemporaryFolder folder;
    write_image(folder.path() / "a/1.png", 50, 8, 6);
    write_image(folder.path() / "a/2.png", 60, 5, 9, 3);
    write_image(folder.path() / "b/1.png", 0, 5, 9, 4);  // all transparent
    data::Options options = folder_options(folder.path());
    options.size = {2, 3};

    CHECK(contains(problem_in(options), "b/1.png: has transparent pixels; write data.background"));
    options.background = {7, 8, 9};
    data::Datasets sets = data::load(options, 1);
    CHECK(first_pixels(sets.training) == std::vector{50, 60, 7});
    CHECK(sets.training.pixels[sets.training.pixels.size() - 1] == 9);
    CHECK(sets.training.height == 2);
    CHECK(sets.training.width == 3);
    options.grey = true;
    sets = data::load(options, 1);
    CHECK(sets.training.channels == 1);
    CHECK(first_pixels(sets.training) == std::vector{50, 60, 8});
    options.size = {};
    CHECK(contains(problem_in(options), "a/2.png: is 5 x 9, "));
    CHECK(contains(problem_in(options), "a/1.png is 8 x 6; write data.size: [height, width]"));
}

TEST_CASE("folder: the checksum is that of HDF5 data with the same images") {
    const TemporaryFolder folder;
    for (const std::string group : {"training", "test"}) {
        write_image(folder.path() / group / "a/1.png", 10);
        write_image(folder.path() / group / "b/1.png", 20);
    }
    const fs::path path = folder.path() / "same.h5";
    {
        const hdf5::Hid file(hdf5::check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "create"));
        std::vector<std::uint8_t> pixels(36, 10);
        pixels.resize(72, 20);
        for (const std::string group : {"training", "test"}) {
            hdf5::write_array(file.get(), {group + "/images", {2, 4, 3, 3}, pixels});
            hdf5::write_array(file.get(), {group + "/labels", {2}, std::vector<std::int64_t>{0, 1}});
        }
    }
    data::Options options{.kind = data::Kind::hdf5, .path = path.string(), .axes = data::Axes::nhwc};

    CHECK(data::load(folder_options(folder.path()), 1).fingerprint == data::load(options, 1).fingerprint);
}

TEST_CASE("folder: a test set alone can be read; several folders are systems") {
    const TemporaryFolder folder;
    write_image(folder.path() / "one/test/cat/1.png", 1);
    write_image(folder.path() / "one/test/dog/1.png", 2);

    CHECK(data::load_test(folder_options(folder.path() / "one"), 1).test.labels == std::vector<std::int32_t>{0, 1});
    CHECK(contains(problem_in(folder_options(folder.path() / "one")),
                   "one: has 1 folder and 0 files (test), but no training set; expected "));
    write_image(folder.path() / "two/cat/1.png", 3);
    write_image(folder.path() / "two/dog/1.png", 4);
    write_image(folder.path() / "one/train/cat/1.png", 5);
    write_image(folder.path() / "one/train/dog/1.png", 6);
    data::Options both{.kind = data::Kind::folder,
                       .systems = {{(folder.path() / "one").string(), {}}, {(folder.path() / "two").string(), {}}}};
    CHECK(first_pixels(data::load(both, 1).training) == std::vector{5, 6, 3, 4});
    fs::rename(folder.path() / "two/cat", folder.path() / "two/cow");
    CHECK(contains(problem_in(both), "two: its classes are 0 cow, 1 dog; those of "));
}

TEST_CASE("folder: folders without images, incomplete sets and other files are refused by name") {
    const TemporaryFolder folder;
    const fs::path photos = folder.path() / "photos";
    const data::Options options = folder_options(photos);
    CHECK(contains(problem_in(options), "photos: there is no such folder; expected a folder with images"));
    write_text(photos);
    CHECK(contains(problem_in(options), "photos: is no folder; expected a folder with images in folders of classes"));
    fs::remove(photos);
    fs::create_directory(photos);
    CHECK(contains(problem_in(options), "photos: has 0 folders and 0 files; expected a folder of PNG or JPEG"));
    for (const std::string name : {"1.png", "2.png", "3.png", "4.png"}) {
        write_image(photos / name, 1);
    }
    CHECK(contains(problem_in(options), "photos: has 0 folders and 4 files (1.png, 2.png, 3.png, …); expected"));
    fs::create_directories(photos / "train/cat");
    fs::create_directories(photos / "train/dog");
    write_text(photos / "train/cat/a.txt");
    CHECK(contains(problem_in(options), "train: has 2 folders and 0 files (cat, dog), but no images in folders"));
    write_image(photos / "train/cat/1.png", 1);
    CHECK(contains(problem_in(options), "train/dog: holds no images, so nothing would train this class"));
    write_image(photos / "train/dog/1.png", 1);
    CHECK(problem_in(options) == "");
    write_image(photos / "train/e\nf/1.png", 1);
    write_image(photos / "train/e\rf/1.png", 1);
    CHECK(contains(problem_in(options), "photos: two classes are both called 'e?f' without their control characters"));
    fs::remove_all(photos / "train/e\nf");
    fs::remove_all(photos / "train/e\rf");
    write_image(photos / "test/cow/1.png", 1);
    CHECK(contains(problem_in(options), "test/cow: is a class without images in "));
    fs::remove_all(photos / "test");
    write_image(photos / "training/cat/1.png", 1);
    CHECK(contains(problem_in(options), "training: is a training set, and so is "));
    fs::remove_all(photos / "training");

    write_image(photos / "train/cat/0.png", 1, 5, 5);
    CHECK(contains(problem_in(options), "train/cat/1.png: is 4 x 3, "));
    fs::remove(photos / "train/cat/0.png");
    for (const std::string name : {"cat/0.png", "cat/2.png", "cat/3.png", "cat/4.png", "cat/5.tif"}) {
        write_text(photos / "train" / name);
    }
    write_image(photos / "test/cat/1.png", 1);
    write_text(photos / "test/cat/2.png");
    const std::string all = problem_in(options);  // in one message
    CHECK(contains(all, "train: 5 of 7 images cannot be used\n"));
    for (const std::string name : {"train/cat/0.png", "train/cat/4.png", "train/cat/5.tif", "test/cat/2.png"}) {
        CHECK(contains(all, name + ": is neither PNG nor JPEG; expected PNG or JPEG"));
    }
    fs::remove_all(photos / "test");
    fs::remove(photos / "train/cat/0.png");
    for (const std::string name : {"2.png", "3.png", "4.png"}) {
        fs::remove(photos / "train/cat" / name);
    }
    std::ofstream(photos / "train/cat/5.tif", std::ios::binary) << std::string("II*\0", 4);
    CHECK(contains(problem_in(options), "cat/5.tif: is TIFF; expected PNG or JPEG (tools/images_to_hdf5.py"));
    fs::remove(photos / "train/cat/5.tif");
    data::Options streamed = options;
    streamed.memory = data::Memory::streamed;
    CHECK(contains(problem_in(streamed), "its images are compressed, so data.memory: streamed cannot read"));
    CHECK(contains(problem_in(streamed), "let tools/images_to_hdf5.py write HDF5, or write data.memory: whole"));
    data::Options own = options;
    own.validation = data::OwnValidation{};
    CHECK(contains(problem_in(own), "has no validation set (hdf5: the group validation; folder: "));
}

}  // namespace
