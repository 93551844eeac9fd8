#include "finch/data/dataset.hpp"

#include "bind.hpp"
#include "domains.hpp"

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

/// The keys of data. Alternatives stand in the order of their variant.
namespace finch::config {
namespace {

void check_data(const data::Options& options, const Tree& written) {
    if (options.kind != data::Kind::generated && options.path.empty()) {
        fail(written["path"], "data.path",
             fmt::format("has no value; data of kind {} is read from there", word(options.kind)));
    }
    const bool by_column = std::holds_alternative<data::ColumnValidation>(options.validation);
    if (by_column && options.kind != data::Kind::hdf5) {
        fail(written["validation"], "data.validation",
             "column is of kind hdf5; accepted: sampled or, for data from files, own");
    }
    if (options.kind == data::Kind::generated && options.memory == data::Memory::streamed) {
        fail(written["memory"], "data.memory", "streamed is for data from files; accepted: whole");
    }
    if (options.kind == data::Kind::generated && std::holds_alternative<data::OwnValidation>(options.validation)) {
        fail(written["validation"], "data.validation", "own is for data from files; accepted: sampled");
    }
}

bool is_column(const std::string& text) {
    return !text.empty() && text.size() <= 200 && text.find('/') == std::string::npos;
}

Domain validation() {
    using Any = data::Validation;
    constexpr std::int64_t exact = std::int64_t{1} << 53;
    return {Variants{{
        alternative<Any>("sampled", data::SampledValidation{}, {},
                         "validation_samples of the training set, chosen by the seed"),
        alternative<Any>("own", data::OwnValidation{},
                         {{key("path", &data::OwnValidation::path, or_null(path()),
                               "where other data of this kind lie, whose training set validates")
                               .with_fixed(Rule::no)}},
                         "a set of its own: hdf5: the group validation; idx: validation-images-idx3-ubyte, "
                         "validation-labels-idx1-ubyte; cifar: validation_batch.bin or validation.bin"),
        alternative<Any>("column", data::ColumnValidation{.name = "split", .values = {1}},
                         {{key("name", &data::ColumnValidation::name,
                               {Text{"a name of a data set", is_column, {"site"}, {"''", "a/b"}}},
                               "of whole numbers training/NAME, one for each image: a patient, a site, a fold")
                               .with_default("split"),
                           key("values", &data::ColumnValidation::values, {List{{whole(-exact, exact)}, 1, 65536}},
                               "images with such a number validate, none of them trains")
                               .with_default("[1]")}},
                         "hdf5: images with certain numbers in a column"),
    }}};
}

}  // namespace

Domain data_section() {
    using data::Options;
    std::vector<Key> keys{
        key("kind", &Options::kind,
            "idx: MNIST's format; cifar: the binary version of CIFAR-10 or CIFAR-100; hdf5: training/images and "
            "training/labels, the same of test and validation where they are there; generated: distorted digits")
            .with_genes(Rule::no),
        key("path", &Options::path, or_null(path()),
            "the folder with the files (hdf5: the file), relative to the working directory; generated needs none")
            .with_genes(Rule::no)
            .with_fixed(Rule::no),  // what lies there must be the same: its fingerprint is checked
        key("axes", &Options::axes,
            "hdf5: the order of the images' axes; auto: as their attribute axes says, else the one axis of 1 to 4 is C")
            .with_genes(Rule::no),
        key("memory", &Options::memory,
            "where the pixels of files are: whole: in the memory of each node; streamed: on the disk, read ahead of "
            "the "
            "training; the numbers are the same")
            .with_genes(Rule::no)
            .with_fixed(Rule::no),
        key("prefetch", &Options::prefetch,
            section({key("threads", &pixels::Prefetch::threads, whole(1, 64), "that read the images, of each rank"),
                     key("batches", &pixels::Prefetch::batches, whole(1, 1024),
                         "that are read before they are needed, of this rank's share; a buffer each, for training and "
                         "for validation, in every slot")}),
            "with memory: streamed")
            .with_genes(Rule::no)
            .with_fixed(Rule::no),
        group("normalize",
              section(
                  {key("mean", &Options::mean, one_or_list(real(-1e9, 1e9)), "subtracted; a list has one per channel"),
                   key("deviation", &Options::deviation, one_or_list(above(0, 1e9)),
                       "divides after that; a list has one per channel")}),
              "pixels that are bytes become (pixel / 255 - mean) / deviation, others (pixel - mean) / deviation"),
        key("augmentation", &Options::augmentation,
            section({key("shift", &data::Augmentation::shift, whole(0, 4096),
                         "pixels by which an image is moved at most, up or down, left or right; black comes in"),
                     key("mirror", &data::Augmentation::mirror, "mirrors half of the images left to right"),
                     key("cutout", &data::Augmentation::cutout, whole(0, 4096),
                         "side of a square that is cut out of each image, at a random place; 0: none")}),
            "distortions of the training images, others in each epoch"),
        key("validation", &Options::validation, validation(), "the images that validate").with_genes(Rule::no),
        key("training_samples", &Options::training_samples, either({word_of({"all"}), whole(1, 4294967295)}),
            "how many train; the seed chooses them from what validation leaves"),
        key("validation_samples", &Options::validation_samples, whole(1, 4294967295),
            "with validation: sampled; the test set, where there is one, is for the best model only")
            .with_default("2000"),
        key("samples", &Options::generated_samples, whole(10, 100 * million),
            "generated: size of the training set; the test set has a sixth of it")
            .with_genes(Rule::no),
        key("size", &Options::generated_size, whole(8, 512), "generated: height and width of an image in pixels")
            .with_genes(Rule::no),
    };
    return {Section{.keys = std::move(keys), .check = check_of<Options>(check_data)}};
}

}  // namespace finch::config
