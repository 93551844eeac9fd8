#include "finch/data/normalisation.hpp"

#include "bind.hpp"
#include "domains.hpp"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// The keys of the section data. Alternatives are listed in the order of the types in their std::variant.
namespace finch::config {
namespace {

Domain auto_or_list(const Domain& domain) {
    return either({word_of({"auto"}), domain, {List{{domain}}}});
}

/// Throws ConfigError for genes that conflict with `normalize: auto`: mean and deviation are computed once, from the
/// training images.
void refuse_genes_of_auto(const data::Options& options, const Tree& written) {
    for (const char* const name : {"training_samples", "validation_samples"}) {
        if (is_gene(written[name])) {
            fail(written[name], path_of("data", name),
                 "is a gene, but data.normalize is auto, computed once of the images that train; accepted: one value "
                 "here, or numbers in data.normalize");
        }
    }
    for (const auto& [name, values] : {std::pair("mean", &options.mean), {"deviation", &options.deviation}}) {
        if (values->empty() && is_gene(written["normalize"][name])) {
            fail(written["normalize"][name], path_of("data.normalize", name),
                 "is a gene, and auto no value of one; accepted: auto alone, or a gene of numbers");
        }
    }
}

/// Reads "0:2:0.7" from the start of `text` and removes it. Returns nothing if `text` begins in another form.
std::optional<data::SystemBlock> take_block(std::string_view& text) {
    data::SystemBlock block;
    const auto take = [&text](auto& number, char behind) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        const bool is_read = error == std::errc{} && (behind == 0 || text.starts_with(behind));
        text.remove_prefix(is_read && behind != 0 ? 1 : 0);
        return is_read;
    };
    const bool is_read = take(block.first, ':') && take(block.end, ':') && take(block.weight, 0);
    return is_read && 0 < block.weight && block.weight <= 1e9 ? std::optional(block) : std::nullopt;
}

/// Returns the blocks of "prob_sys_size;0:2:0.7;2:5:0.3", which is DeePMD-kit's notation; none for "prob_sys_size".
/// Returns nothing if `text` has another form.
std::optional<std::vector<data::SystemBlock>> system_blocks(std::string_view text) {
    constexpr std::string_view rule = "prob_sys_size";
    if (!text.starts_with(rule)) {
        return std::nullopt;
    }
    std::vector<data::SystemBlock> blocks;
    for (text.remove_prefix(rule.size()); !text.empty();) {
        const bool is_next = text.front() == ';';
        text.remove_prefix(1);
        const auto block = is_next ? take_block(text) : std::nullopt;
        if (!block) {
            return std::nullopt;
        }
        blocks.push_back(*block);
    }
    return blocks;
}

/// The key `auto_prob`, with the name and the notation of DeePMD-kit.
Key auto_prob() {
    const Text notation{"prob_sys_size;FIRST:END:WEIGHT;…",
                        [](const std::string& text) { return system_blocks(text).has_value(); },
                        {"prob_sys_size"},
                        {"prob_sys_size;", "prob_sys_size;0:1", "prob_sys_size;0:1:0", "prob_sys_size;0:1:-1",
                         "prob_sys_size;0:1:nan", "prob_sys_size; 0:1:1", "prob_sys_size;0:1:1,1:2:1", "prob_uniform"}};
    const auto set = [](const Tree& tree, const Target& options) {
        options.as<data::Options>().system_blocks = system_blocks(tree.text).value();
    };
    return {
        "auto_prob",
        "prob_sys_size",
        {notation},
        "for systems without weights: blocks of systems, as in DeePMD-kit; with prob_sys_size;0:2:0.7;2:5:0.3 the "
        "systems 0 and 1 get 0.7 of each epoch and the systems 2 to 4 get 0.3, within a block in proportion to their "
        "sizes; without blocks all shares are in proportion to the sizes",
        set};
}

void check_blocks(const data::Options& options, const Tree& written) {
    const std::string path = "data.auto_prob";
    const auto systems = std::ssize(options.systems);
    if (options.system_blocks.empty()) {
        return;
    }
    if (systems > 0 && options.systems.front().weight) {
        fail(written, path, "cannot be combined with weights of data.systems; accepted: one of them");
    }
    if (systems == 0) {
        fail(written, path, "needs data.systems; accepted: none");
    }
    std::int64_t next = 0;
    for (const data::SystemBlock& block : options.system_blocks) {
        if (block.first != next || block.end <= block.first || block.end > systems) {
            fail(written, path,
                 fmt::format(
                     "the block {}:{} does not fit; accepted: blocks that cover the {} data.systems in order, each "
                     "from the end of the last",
                     block.first, block.end, systems));
        }
        next = block.end;
    }
    if (next != systems) {
        fail(written, path,
             fmt::format("the blocks end at {}; accepted: blocks that cover all {} data.systems", next, systems));
    }
}

void check_systems(const data::Options& options, const Tree& written) {
    check_blocks(options, written["auto_prob"]);
    const Tree& systems = written["systems"];
    if (!options.systems.empty() && options.kind == data::Kind::generated) {
        fail(systems, "data.systems", "are of files; accepted: data of kind idx, cifar, hdf5 or folder");
    }
    if (!options.systems.empty() && !options.path.empty()) {
        fail(systems, "data.systems", "cannot be combined with data.path; accepted: one of them");
    }
    std::set<std::filesystem::path> paths;
    for (std::size_t i = 0; i < options.systems.size(); ++i) {
        const data::System& system = options.systems[i];
        const std::string path = path_of("data.systems", i);
        if (system.path.empty()) {
            fail(systems.items[i], path_of(path, "path"), "has no value; accepted: where the system lies");
        }
        if (!paths.insert(std::filesystem::path(system.path).lexically_normal()).second) {
            fail(systems.items[i], path_of(path, "path"),
                 fmt::format("'{}' is there already; accepted: each system once, with a weight", system.path));
        }
        if (system.weight.has_value() != options.systems.front().weight.has_value()) {
            fail(systems.items[i], path_of(path, "weight"),
                 "stands in some systems only; accepted: a weight of each system, or of none");
        }
    }
}

/// Throws ConfigError if a key for images of folders is given for another kind of data.
void check_folder_keys(const data::Options& options, const Tree& written) {
    const bool is_folder = options.kind == data::Kind::folder;
    const bool is_generated = options.kind == data::Kind::generated;
    if ((options.size.size() == 2 && !is_folder) || (options.size.size() == 1 && !is_generated)) {
        fail(written["size"], "data.size",
             fmt::format("does not fit data of kind {}; accepted: {}", word(options.kind),
                         is_folder      ? "[height, width], or auto: the size of the files"
                         : is_generated ? "one number for height and width"
                                        : "auto (only images of kind folder are resized)"));
    }
    for (const auto& [name, is_given] :
         {std::pair("grey", options.grey), {"background", !options.background.empty()}}) {
        if (is_given && !is_folder) {
            fail(written[name], path_of("data", name),
                 fmt::format("is for data of kind folder, and these are of kind {}; accepted: the default",
                             word(options.kind)));
        }
    }
}

void check_data(const data::Options& options, const Tree& written) {
    check_systems(options, written);
    check_folder_keys(options, written);
    if (options.kind != data::Kind::generated && options.path.empty() && options.systems.empty()) {
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
    if (data::needs_moments(options)) {
        refuse_genes_of_auto(options, written);
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
                         "as many samples of the training set as validation_samples says, chosen by the seed"),
        alternative<Any>(
            "own", data::OwnValidation{},
            {{key("path", &data::OwnValidation::path, or_null(path()),
                  "path of other data of the same kind; their training set becomes the validation set; null: as above")
                  .with_fixed(Rule::no)}},
            "a separate validation set: hdf5: the group validation; folder: the folder validation; idx: "
            "validation-images-idx3-ubyte, validation-labels-idx1-ubyte; cifar: validation_batch.bin or "
            "validation.bin"),
        alternative<Any>("column", data::ColumnValidation{.name = "split", .values = {1}},
                         {{key("name", &data::ColumnValidation::name,
                               {Text{"a name of a data set", is_column, {"site"}, {"''", "a/b"}}},
                               "name of the dataset training/NAME, which has a whole number for each image: a patient, "
                               "a site, a fold")
                               .with_default("split"),
                           key("values", &data::ColumnValidation::values, {List{{whole(-exact, exact)}, 1, 65536}},
                               "images with one of these numbers are used for validation, and never for training")
                               .with_default("[1]")}},
                         "hdf5: the images with certain numbers in a column"),
    }}};
}

}  // namespace

Domain data_section() {
    using data::Options;
    std::vector<Key> keys{
        key("kind", &Options::kind,
            "format of the data: idx: MNIST's format; cifar: the binary version of CIFAR-10 or CIFAR-100; hdf5: "
            "training/images and training/labels, and optionally the same two in the groups test and validation; "
            "folder: PNG and JPEG files in training/CLASS, and optionally in test/CLASS and validation/CLASS; "
            "generated: distorted digits")
            .with_genes(Rule::no),
        key("path", &Options::path, or_null(path()),
            "folder with the files (hdf5: the file), relative to the working directory; kind: generated needs no path")
            .with_genes(Rule::no)
            .with_fixed(Rule::no),  // the files must hold the same data: the fingerprint is checked
        key("systems", &Options::systems,
            either(
                {word_of({"none"}),
                 {List{.element = {section({key("path", &data::System::path, or_null(path()), "path of this data set")
                                                .with_fixed(Rule::no),
                                            key("weight", &data::System::weight, or_null(above(0, 1e9)),
                                                "weight of this data set: its share of each epoch in proportion to all "
                                                "weights; null for all data sets: in proportion to their sizes")})},
                       .most = 10000}}}),
            "[{path: a, weight: 1}, …]: several data sets of one kind and shape, trained on together, instead of path; "
            "all of them have a weight or none has; without weights the shares are in proportion to the sizes")
            .with_default("none")
            .with_genes(Rule::no),
        auto_prob().with_genes(Rule::no),
        key("axes", &Options::axes,
            "hdf5: order of the images' axes; auto: as in their attribute axes; without this attribute, the only "
            "possible axis with a size of 1 to 4 is C")
            .with_genes(Rule::no),
        key("memory", &Options::memory,
            "storage of the pixels of data files: whole: in the memory of each node; streamed: on the disk, read ahead "
            "of the training; both give the same results")
            .with_genes(Rule::no)
            .with_fixed(Rule::no),
        key("prefetch", &Options::prefetch,
            section({key("threads", &pixels::Prefetch::threads, whole(1, 64),
                         "number of threads of each rank that read images"),
                     key("batches", &pixels::Prefetch::batches, whole(1, 1024),
                         "number of batches that each rank reads ahead (its share of them); in every slot, training "
                         "and validation have a buffer for each")}),
            "how images are read ahead, with memory: streamed")
            .with_genes(Rule::no)
            .with_fixed(Rule::no),
        group(
            "normalize",
            section({key("mean", &Options::mean, auto_or_list(real(-1e9, 1e9)),
                         "number to subtract; a list has one number per channel; auto: each channel's mean over all "
                         "training pixels"),
                     key("deviation", &Options::deviation, auto_or_list(above(0, 1e9)),
                         "divisor after the subtraction; a list has one number per channel; auto: each channel's "
                         "standard deviation over all training pixels, or 1 if that is 0")}),
            "pixels stored as bytes become (pixel / 255 - mean) / deviation, other pixels (pixel - mean) / deviation"),
        key("augmentation", &Options::augmentation,
            section({key("shift", &data::Augmentation::shift, whole(0, 4096),
                         "maximum shift of an image in pixels, up or down and left or right; new pixels are black"),
                     key("mirror", &data::Augmentation::mirror, "mirrors half of the images left to right"),
                     key("cutout", &data::Augmentation::cutout, whole(0, 4096),
                         "side in pixels of a square that is cut out of each image, at a random place; 0: none"),
                     key("rotation", &data::Augmentation::rotation, real(0, 180),
                         "maximum rotation of an image about its centre in degrees, in either direction; new pixels "
                         "are black")}),
            "random distortions of the training images, new in each epoch: mirror, rotation, shift and cutout, in this "
            "order"),
        key("validation", &Options::validation, validation(), "images of the validation set").with_genes(Rule::no),
        key("training_samples", &Options::training_samples, either({word_of({"all"}), whole(1, 4294967295)}),
            "number of training samples; the seed chooses them from the samples that are not for validation"),
        key("validation_samples", &Options::validation_samples, whole(1, 4294967295),
            "with validation: sampled: number of validation samples; a test set is used only for the best model")
            .with_default("2000"),
        key("samples", &Options::generated_samples, whole(10, 100 * million),
            "generated: number of training images; the test set has a sixth of this number")
            .with_genes(Rule::no),
        key("size", &Options::size, either({word_of({"auto"}), whole(8, 512), {List{{whole(1, 65536)}, 2, 2}}}),
            "folder: [height, width] to which images are resized; auto: the size of the files, which must be the same. "
            "generated: a number for height and width; auto: 28")
            .with_default("auto")
            .with_genes(Rule::no),
        key("grey", &Options::grey, "folder: images get one channel; otherwise three: red, green and blue")
            .with_genes(Rule::no),
        key("background", &Options::background, either({word_of({"none"}), {List{{whole(0, 255)}, 3, 3}}}),
            "folder: [red, green, blue] behind transparent pixels; none: such images are refused")
            .with_default("none")
            .with_genes(Rule::no),
    };
    return {Section{.keys = std::move(keys), .check = check_of<Options>(check_data)}};
}

}  // namespace finch::config
