// Tests of class names, and of labels that no training image has.
#include "finch/data/labels.hpp"

#include "finch/hdf5/file.hpp"

#include "files.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;
using namespace finch::test;
using Names = std::vector<std::string>;
using Wholes = std::vector<std::int64_t>;

NamedArrays labelled(const std::string& group, const Wholes& labels) {
    const auto count = std::ssize(labels);
    return {{group + "/images", {count, 1, 1}, std::vector<std::uint8_t>(labels.size(), 7)},
            {group + "/labels", {count}, labels}};
}

/// A file with these sets and an attribute with the class `names`.
class NamedFile {
public:
    explicit NamedFile(std::initializer_list<NamedArrays> sets, const Names& names = {}) {
        const hdf5::Hid file(
            hdf5::check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate"));
        for (const NamedArrays& set : sets) {
            for (const NamedArray& array : set) {
                hdf5::write_array(file.get(), array);
            }
        }
        if (!names.empty()) {
            hdf5::write_texts_attribute(file.get(), "classes", names);
        }
    }

private:
    TemporaryFolder folder_;

public:
    std::string path = (folder_.path() / "named.h5").string();
    data::Options options{.kind = data::Kind::hdf5, .path = path};
};

std::string problem_with(const data::Options& options) {
    try {
        (void)data::load(options, 1);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

std::string untrained(const data::Options& options) {
    const data::Datasets sets = data::load(options, 1);
    return data::untrained_labels_text(sets.training, sets.test, data::split(options, sets.training, 1));
}

TEST_CASE("class names: the file's attribute names the classes of both sets, also in the memory that a node shares") {
    const NamedFile file({labelled("training", {0, 1}), labelled("test", {1})}, {"a,\"b\"", "größe\n\x1b[1m\xff"});

    const data::Datasets sets = data::load(file.options, 1);
    std::vector<std::byte> block(data::block_bytes(sets.training));
    data::write_block(sets.training, block);

    const Names expected{"a,\"b\"", "größe ?[1m?"};
    CHECK(sets.training.class_names == expected);
    CHECK(sets.test.class_names == expected);
    CHECK(data::view_block(block).class_names == expected);
    CHECK(data::load_test(file.options, 1).test.class_names == expected);
    CHECK(data::label_text(sets.training, 0) == "0 (a,\"b\")");
    CHECK(data::label_text({}, 3) == "3");
    CHECK(data::class_names_text(sets.training) == "0 a,\"b\", 1 größe ?[1m?");
}

TEST_CASE("class names: a file is rejected if the number of names differs from the number of classes") {
    CHECK(contains(problem_with(NamedFile({labelled("training", {1, 2})}, {"a", "b"}).options),
                   "has 2 names of classes (a, b), but its labels are 1 to 2; expected labels from 0"));
    CHECK(contains(problem_with(NamedFile({labelled("training", {0, 1})}, {"a", "b", "c"}).options), "has 3 names"));
    const NamedFile fewer({labelled("test", {0, 1})}, {"a", "b", "c"});
    CHECK(data::load_test(fewer.options, 1).test.class_names.size() == 3);
}

TEST_CASE("class names: systems and validation set must have the same names; sets without names are accepted") {
    const NamedFile first({labelled("training", {0, 1})}, {"a", "b"});
    const NamedFile other({labelled("training", {0, 1})}, {"b", "a"});
    const NamedFile nameless({labelled("training", {0, 1})});
    const auto validated_by = [&first](const NamedFile& file) {
        data::Options options = first.options;
        options.validation = data::OwnValidation{file.path};
        return options;
    };
    const data::Options both{.kind = data::Kind::hdf5, .systems = {{nameless.path, {}}, {first.path, {}}}};
    data::Options differ = both;
    differ.systems[0].path = other.path;

    CHECK(data::load(both, 1).training.class_names == Names{"a", "b"});
    CHECK(contains(problem_with(differ), "its classes are 0 a, 1 b; those of " + other.path + " are 0 b, 1 a"));
    CHECK(problem_with(validated_by(nameless)).empty());
    CHECK(contains(problem_with(validated_by(other)), "its classes are 0 b, 1 a; those of " + first.path));
}

TEST_CASE("class names: an attribute that is not a list of strings is ignored") {
    const NamedFile file({labelled("training", {0, 1})});
    {
        const hdf5::Hid open(H5Fopen(file.path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
        hdf5::write_attribute(open.get(), "classes", std::int64_t{2});
    }

    CHECK(data::load(file.options, 1).training.class_names.empty());
}

TEST_CASE("class names: labels become those of a network with the same names, also in another order") {
    data::Dataset set{.labels = {{0, 1, 1, 2}}, .class_names = {"dog", "ant", "cow"}};

    data::use_trained_classes({"ant", "bee", "cow", "dog"}, set);

    CHECK(set.labels == std::vector<std::int32_t>{3, 0, 0, 2});
    CHECK_THROWS_WITH_AS(
        data::use_trained_classes({"ant", "dog"}, set),
        "the data have images of 'cow'; accepted: classes that the network was trained with (ant, dog)", ConfigError);
}

TEST_CASE("unused labels: if the first labels are unused, the text asks whether counting starts at 1") {
    CHECK(untrained(NamedFile({labelled("training", {0, 1, 2})}).options).empty());
    CHECK(untrained(NamedFile({labelled("training", {1, 2, 3})}).options) ==
          "no image has label 0 (labels 1 to 3: does counting start at 1? It must start at 0); networks get 4 classes");
    CHECK(untrained(NamedFile({labelled("training", {0, 5, 9})}).options) ==
          "no image has labels 1 to 4, 6 to 8; networks get 10 classes");
    Wholes even;
    for (std::int64_t label = 0; label < 50; label += 2) {
        even.push_back(label);
    }
    CHECK(contains(untrained(NamedFile({labelled("training", even)}).options),
                   "labels 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 14 more;"));
}

TEST_CASE("unused labels: the text says which other sets have the label") {
    const NamedFile file({labelled("training", {0, 1, 2, 4}), labelled("test", {3, 4})}, {"a", "b", "c", "d", "e"});
    data::Options options = file.options;
    const NamedFile apart({labelled("training", {3})});
    options.validation = data::OwnValidation{apart.path};
    CHECK(untrained(options) == "no training image has label 3 (d), only the validation set and the test set");
    options.validation = data::ColumnValidation{"labels", {4}};
    CHECK(untrained(options) ==
          "no training image has label 3 (d), only the test set; no training image has "
          "label 4 (e), only the validation set and the test set");
    options.validation = data::SampledValidation{};
    options.training_samples = 3;
    CHECK(contains(untrained(options), "data.training_samples leaves out"));
    CHECK(data::untrained_labels_text({.target_size = 1, .targets = std::vector<float>{1}}, {}, {}).empty());
}

}  // namespace
