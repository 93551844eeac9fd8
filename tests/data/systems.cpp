// Tests of several data sets (systems) that are joined: each part must equal its system loaded alone.
#include "finch/hdf5/file.hpp"

#include "files.hpp"

#include <doctest/doctest.h>
#include <numeric>

namespace {

using namespace finch;
using namespace finch::test;
using Bytes = std::vector<std::uint8_t>;
using Wholes = std::vector<std::int64_t>;

/// Returns (samples, 2, `width`) images in `group`. The pixel values count up from `first`, the labels alternate 0, 1,
/// 0 …
NamedArrays set_of(const std::string& group, std::int64_t samples, std::uint8_t first, std::int64_t width = 2) {
    Bytes pixels(static_cast<std::size_t>(samples * 2 * width));
    std::iota(pixels.begin(), pixels.end(), first);
    Wholes labels;
    for (std::int64_t i = 0; i < samples; ++i) {
        labels.push_back(i % 2);
    }
    return {{group + "/images", {samples, 2, width}, pixels}, {group + "/labels", {samples}, labels}};
}

class Systems {
public:
    /// Writes the file of one system with all `parts`, and appends it to the options.
    void add(std::initializer_list<NamedArrays> parts) {
        const std::string path =
            (folder_.path() / ("system" + std::to_string(options.systems.size()) + ".h5")).string();
        const hdf5::Hid file(
            hdf5::check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate"));
        for (const NamedArrays& part : parts) {
            for (const NamedArray& array : part) {
                hdf5::write_array(file.get(), array);
            }
        }
        options.systems.push_back({path, std::nullopt});
    }
    [[nodiscard]] data::Datasets alone(std::size_t i) const {
        data::Options one = options;
        one.path = options.systems[i].path;
        one.systems.clear();
        return data::load(one, 1);
    }
    [[nodiscard]] std::string problem() const {
        try {
            (void)data::load(options, 1);
        } catch (const ConfigError& error) {
            return error.what();
        }
        return "";
    }

    data::Options options{.kind = data::Kind::hdf5, .validation_samples = 1};

private:
    TemporaryFolder folder_;
};

template <class T>
std::vector<T> joined(const data::Elements<T>& a, const data::Elements<T>& b) {
    std::vector<T> all(a.begin(), a.end());
    all.insert(all.end(), b.begin(), b.end());
    return all;
}

TEST_CASE("systems: training and test sets are joined in order; a system may have no test set") {
    Systems systems;
    systems.add({set_of("training", 3, 0), set_of("test", 2, 90)});
    systems.add({set_of("training", 2, 50)});
    systems.add({set_of("training", 4, 100), set_of("test", 1, 7)});

    const data::Datasets sets = data::load(systems.options, 1);

    const data::Datasets a = systems.alone(0), b = systems.alone(1), c = systems.alone(2);
    CHECK(sets.training.pixels ==
          joined(data::Elements(joined(a.training.pixels, b.training.pixels)), c.training.pixels));
    CHECK(sets.training.labels ==
          joined(data::Elements(joined(a.training.labels, b.training.labels)), c.training.labels));
    CHECK(sets.training.system_ends == Wholes{3, 5, 9});
    CHECK(sets.test.pixels == joined(a.test.pixels, c.test.pixels));
    CHECK(sets.test.system_ends == Wholes{2, 2, 3});
    CHECK(data::load_test(systems.options, 1).test.pixels == sets.test.pixels);
    CHECK(a.training.system_ends.empty());

    std::vector<std::byte> block(data::block_bytes(sets.training));
    data::write_block(sets.training, block);
    CHECK(data::view_block(block).system_ends == Wholes{3, 5, 9});
    std::swap(systems.options.systems[0], systems.options.systems[1]);
    CHECK(data::load(systems.options, 1).fingerprint != sets.fingerprint);
}

TEST_CASE("systems: targets are joined in the same way as labels") {
    Systems systems;
    systems.options.answer = data::TargetKind::target;
    for (const double first : {0.5, 10.0}) {
        NamedArrays arrays = set_of("training", 2, 0);
        arrays[1] = {"training/labels", {2, 2}, std::vector<double>{first, 1, 2, 3}};
        systems.add({arrays});
    }

    const data::Dataset set = data::load(systems.options, 1).training;

    CHECK(set.targets == std::vector<float>{0.5, 1, 2, 3, 10, 1, 2, 3});
    CHECK(set.samples() == 4);
    CHECK(set.system_ends == Wholes{2, 4});
}

TEST_CASE("systems: the fingerprint depends on the boundaries between systems, not only on the data") {
    Systems one, two;
    one.add({set_of("training", 3, 0)});
    one.add({set_of("training", 3, 12)});
    NamedArrays first = set_of("training", 2, 0), second = set_of("training", 4, 8);
    first[1].values = Wholes{0, 1};
    second[1].values = Wholes{0, 0, 1, 0};
    two.add({first});
    two.add({second});
    const data::Datasets a = data::load(one.options, 1), b = data::load(two.options, 1);

    CHECK(a.training.pixels == b.training.pixels);
    CHECK(a.training.labels == b.training.labels);
    CHECK(a.fingerprint != b.fingerprint);
}

TEST_CASE("systems: the systems' own validation sets, or a separate one, follow after the training images") {
    Systems systems;
    systems.add({set_of("training", 3, 0), set_of("validation", 1, 30)});
    systems.add({set_of("training", 2, 50), set_of("validation", 2, 80)});
    systems.options.validation = data::OwnValidation{};

    const data::Datasets own = data::load(systems.options, 1);
    systems.options.validation = data::OwnValidation{systems.options.systems[0].path};
    const data::Datasets elsewhere = data::load(systems.options, 1);

    CHECK(own.training.validation == Wholes{5, 6, 7});
    CHECK(own.training.system_ends == Wholes{3, 5});
    CHECK(own.training.pixels[5 * 4] == 30);
    CHECK(own.training.pixels[6 * 4] == 80);
    CHECK(elsewhere.training.validation == Wholes{5, 6, 7});
    CHECK(elsewhere.training.pixels[5 * 4] == 0);
    systems.add({set_of("training", 2, 50)});
    systems.options.validation = data::OwnValidation{};
    CHECK(contains(systems.problem(), "system2.h5: has no validation set"));
}

TEST_CASE("systems: every system must have the column; each value must occur in one system at least") {
    Systems systems;
    const auto site = [](Wholes values) {
        const auto count = static_cast<std::int64_t>(values.size());
        return NamedArrays{{"training/site", {count}, std::move(values)}};
    };
    systems.add({set_of("training", 3, 0), site({1, 2, 1})});
    systems.add({set_of("training", 2, 50), site({5, 1})});
    systems.options.validation = data::ColumnValidation{"site", {2, 5}};

    CHECK(data::load(systems.options, 1).training.validation == Wholes{1, 3});
    systems.options.validation = data::ColumnValidation{"site", {2, 6}};
    CHECK(contains(systems.problem(), "training/site is 6 for no image"));
    systems.add({set_of("training", 2, 50)});
    CHECK(contains(systems.problem(), "system2.h5: training/site cannot be read"));
}

TEST_CASE("systems: sets that do not fit are rejected; the message has the file, the difference and the expectation") {
    Systems wider;
    wider.add({set_of("training", 3, 0)});
    wider.add({set_of("training", 3, 0, 5)});
    CHECK(contains(wider.problem(), "system1.h5: images are 2 x 5 x 1 bytes, those of "));
    CHECK(contains(wider.problem(), "system0.h5 2 x 2 x 1 bytes; expected the same in all systems"));
    Systems floats;
    floats.add({set_of("training", 3, 0)});
    NamedArrays other = set_of("training", 3, 0);
    other[0].values = std::vector<float>(12);
    floats.add({other});
    CHECK(contains(floats.problem(), "system1.h5: images are 2 x 2 x 1 floating-point numbers"));
    Systems tests;
    tests.add({set_of("training", 3, 0), set_of("test", 1, 0)});
    tests.add({set_of("training", 3, 0), set_of("test", 1, 0, 3)});
    CHECK(contains(tests.problem(), "system1.h5: images are 2 x 3 x 1 bytes"));
    Systems missing;
    missing.add({set_of("training", 3, 0)});
    missing.options.systems.push_back({"/nowhere.h5", std::nullopt});
    CHECK(contains(missing.problem(), "/nowhere.h5: there is no such file"));
    Systems targets;
    targets.options.answer = data::TargetKind::target;
    targets.add({set_of("training", 3, 0)});
    NamedArrays pairs = set_of("training", 3, 0);
    pairs[1] = {"training/labels", {3, 2}, std::vector<double>(6)};
    targets.add({pairs});
    CHECK(contains(targets.problem(), "with targets of 2 numbers"));
}

}  // namespace
