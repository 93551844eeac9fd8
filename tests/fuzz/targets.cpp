#include "targets.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/allocation.hpp"
#include "finch/config/command.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"
#include "finch/evaluate/order.hpp"
#include "finch/evaluate/report_line.hpp"
#include "finch/hdf5/file.hpp"
#include "finch/images/image.hpp"
#include "finch/search/record.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/model_file.hpp"

#include "store/samples.hpp"
#include "support/image_files.hpp"
#include "support/temporary_folder.hpp"

namespace finch::fuzz {
namespace {

namespace fs = std::filesystem;
using store::samples::mnist_space;

constexpr std::uint64_t run = 7;
constexpr std::size_t user_block = 512;
constexpr std::size_t seal_crc = 12;
constexpr std::size_t seal_rest = 16;

Bytes bytes_of(const std::string& text) {
    const auto raw = std::as_bytes(std::span(text));
    return {raw.begin(), raw.end()};
}

std::string text_of(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes file(const fs::path& path) {
    return bytes_of(testing::contents(path));
}

void put(const fs::path& path, const Bytes& bytes) {
    testing::put_contents(path, text_of(bytes));
}

/// Updates the checksum of a Finch file, so that the reader's check passes: an attacker could do the same.
void seal(Bytes& bytes) {
    if (bytes.size() < user_block) {
        return;
    }
    const std::uint64_t rest = bytes.size() - user_block;
    std::uint32_t crc = 0;
    std::memcpy(bytes.data() + seal_crc, &crc, sizeof crc);
    std::memcpy(bytes.data() + seal_rest, &rest, sizeof rest);
    crc = crc32c(bytes);
    std::memcpy(bytes.data() + seal_crc, &crc, sizeof crc);
}

/// Updates the CRC of every record with a plausible length.
void correct_records(Bytes& bytes) {
    std::size_t at = 0;
    while (bytes.size() - at >= 24) {
        std::uint32_t length = 0;
        std::memcpy(&length, bytes.data() + at + 8, sizeof length);
        if (length > bytes.size() - at - 24) {
            return;
        }
        const auto record = std::span<const std::byte>(bytes).subspan(at, 24 + length);
        const std::uint32_t crc = crc32c(record.subspan(24), crc32c(record.first(20)));
        std::memcpy(bytes.data() + at + 20, &crc, sizeof crc);
        at += 24 + length;
    }
}

Bytes records() {
    const auto one = [](std::uint32_t number) { return store::samples::individual(number, mnist_space()); };
    Bytes all;
    for (const search::Record& record : std::vector<search::Record>{
             search::Started{one(1)}, search::Result{one(8)}, search::Move{one(2), {1, 2, 3}}, search::Copy{one(3), 1},
             search::Event{1.5, 2, "stop", "USR2"}, search::WorkerReport{1, 2, 3, 4, 5, "n01", "cpu", 6, 7, 8, 9},
             search::LeaseMessage{}, search::Archived{7}, search::Halt{true, "enough"}}) {
        const Bytes bytes = encode(record, run);
        all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
}

void read_records(const Bytes& bytes) {
    search::RecordReader reader(bytes, run, "journal");
    while (const auto record = reader.next()) {
        std::visit(
            [](const auto& kind) {
                if constexpr (requires { kind.individual; }) {
                    static_cast<void>(problem_of(kind.individual, mnist_space()));
                }
            },
            *record);
    }
}

Target yaml() {
    return {"yaml",
            {file(FINCH_SOURCE "/configs/mnist.yaml"),
             bytes_of("name: a\nsearch: {space: {lr: {real: [1e-4, 0.1], scale: log}, n: {choice: [8, 16]}}}\n"
                      "model: [{conv: {channels: $n}}, max_pool, flatten, linear]\ntraining: {learning_rate: $lr}\n"),
             bytes_of("training: {epochs: $a, optimizer: {$o: {sgd: {momentum: $m}}}}\n"
                      "search:\n  constraints: [a * m <= 9 or o == adam]\n  first: [{a: 3, m: 0.5}]\n  start: sobol\n"
                      "  space: {a: {int: [1, 64], scale: log}, m: {real: [0, 0.9], step: 0.1, when: {o: [sgd]}}, "
                      "o: {choice: [sgd, adam], ordered: true}}\n"),
             bytes_of("a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c {d: *b, e: [*b, *b]}\nf: [[[[{g: *c}]]]]\n"),
             bytes_of("search:\n  objective: {command: 'python a.py --lr {lr} \"{id}\"', shell: true, keep: all,\n"
                      "    files: {in/a.json: a.tpl}, timeout_seconds: 60}\n  space: {lr: {real: [0, 1]}}\n"),
             bytes_of("data: {kind: hdf5, path: x, axes: NCHW}\nworkers: {islands: [1, 2]}\n")},
            [](const Bytes& bytes) { static_cast<void>(config::parse(text_of(bytes), "f.yaml")); }};
}

Target setting() {
    return {"setting",
            {bytes_of("model[0].conv.kernel=3"), bytes_of("workers.islands=[1, 2]"), bytes_of("a.b.c={d: &x [1, *x]}")},
            [](const Bytes& bytes) { static_cast<void>(config::parse("name: a", "f.yaml", {text_of(bytes)})); }};
}

/// Loads a data set in memory and streamed. A malformed file must not be reported as a failing disk (StorageError).
void load(data::Options options) {
    options.memory = data::Memory::streamed;
    try {
        static_cast<void>(data::load(options, 1));
    } catch (const StorageError& error) {
        throw std::logic_error(error.what());
    } catch (const Error&) {
        // The set may still be readable into memory.
    }
    options.memory = data::Memory::whole;
    static_cast<void>(data::load(options, 1));
}

Target idx(const fs::path& folder, const std::string& changed) {
    const fs::path place = folder / ("idx-" + changed);
    data::generate({.generated_samples = 12, .size = {8}}, 1, place.string());
    const fs::path path = place / (changed + ".gz");
    std::vector<Bytes> corpus{file(path)};
    const bool images = changed.find("images") != std::string::npos;
    Bytes plain = bytes_of(images ? std::string("\0\0\x8\3\0\0\0\xc\0\0\0\x8\0\0\0\x8", 16) + std::string(768, 'p')
                                  : std::string("\0\0\x8\1\0\0\0\xc", 8) + std::string("\0\1\2\3\4\5\6\7\7\7\1\2", 12));
    corpus.push_back(std::move(plain));
    return {"idx-" + changed.substr(6, 6), corpus, [place, path](const Bytes& bytes) {
                put(path, bytes);
                load({.kind = data::Kind::idx, .path = place.string()});
            }};
}

Target cifar(const fs::path& folder) {
    const fs::path place = folder / "cifar";
    fs::create_directories(place);
    const Bytes good = bytes_of("\3" + std::string(3072, 'p'));
    for (int batch = 1; batch <= 5; ++batch) {
        put(place / ("data_batch_" + std::to_string(batch) + ".bin"), good);
    }
    return {"cifar", {good}, [place](const Bytes& bytes) {
                put(place / "test_batch.bin", bytes);
                load({.kind = data::Kind::cifar, .path = place.string()});
            }};
}

Target image_files() {
    const std::string exif = testing::exif_of(6);
    const images::Image image = testing::patterned(6, 5, 4);
    return {"images",
            {testing::png_of(image), testing::with_chunk(testing::png_of(image), "eXIf", exif),
             testing::jpeg_of(testing::patterned(9, 20, 3), JCS_RGB, exif)},
            [](const Bytes& bytes) {
                static_cast<void>(images::read(bytes, {.size = images::Size{4, 4}, .background = {{1, 2, 3}}}));
            }};
}

Target images(const fs::path& folder) {
    const fs::path path = folder / "images.h5";
    hdf5::prepare();
    {
        const hdf5::Hid made(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        for (const std::string group : {"training", "test"}) {
            hdf5::write_array(made.get(), {group + "/images", {4, 3, 5, 5}, std::vector<std::uint8_t>(300, 9)});
            hdf5::write_array(made.get(), {group + "/labels", {4}, std::vector<std::int64_t>{0, 1, 2, 1}});
            const hdf5::Hid set(H5Oopen(made.get(), (group + "/images").c_str(), H5P_DEFAULT));
            hdf5::write_attribute(set.get(), "axes", "NCHW");
        }
    }
    return {.name = "hdf5",
            .corpus = {file(path)},
            .read =
                [path](const Bytes& bytes) {
                    put(path, bytes);
                    load({.kind = data::Kind::hdf5, .path = path.string()});
                },
            .uses_hdf5 = true};
}

/// Creates a target of float images and float targets, with a separate validation set and a column.
Target numbers(const fs::path& folder) {
    const fs::path path = folder / "numbers.h5";
    hdf5::prepare();
    {
        const hdf5::Hid made(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        for (const std::string group : {"training", "validation"}) {
            hdf5::write_array(made.get(), {group + "/images", {4, 5, 5}, std::vector<float>(100, 0.5F)});
            hdf5::write_array(made.get(), {group + "/labels", {4, 2}, std::vector<double>(8, -1.5)});
            hdf5::write_array(made.get(), {group + "/site", {4}, std::vector<std::int64_t>{0, 1, 2, 1}});
        }
    }
    return {.name = "hdf5-numbers",
            .corpus = {file(path)},
            .read =
                [path](const Bytes& bytes) {
                    put(path, bytes);
                    data::Options options{
                        .kind = data::Kind::hdf5, .path = path.string(), .answer = data::TargetKind::target};
                    options.validation = data::ColumnValidation{"site", {1}};
                    load(options);
                    options.validation = data::OwnValidation{};
                    load(options);
                },
            .uses_hdf5 = true};
}

Target archive(const fs::path& folder, bool sealed) {
    const fs::path path = folder / (sealed ? "sealed-population.h5" : "population.h5");  // no previous versions
    store::ArchiveFacts facts = store::samples::facts();
    facts.config = "name: a";
    store::write_archive(path, mnist_space(), store::samples::population(12, mnist_space()), facts);
    return {.name = sealed ? "archive-sealed" : "archive",
            .corpus = {file(path)},
            .read =
                [path](const Bytes& bytes) {
                    put(path, bytes);
                    std::vector<std::string> problems;
                    static_cast<void>(store::read_archive(path, problems, OnDamage::set_aside));
                },
            .repair = sealed ? seal : [](Bytes&) {},
            .uses_hdf5 = true};
}

Target model(const fs::path& folder, bool sealed) {
    const fs::path path = folder / (sealed ? "sealed-model.h5" : "model.h5");
    store::write_model(path,
                       {store::samples::individual(8, mnist_space()),
                        "lr = 1",
                        {{"0.weight", {2, 3}, std::vector<float>(6)}, {"step", {}, std::vector<std::int64_t>{5}}}});
    return {.name = sealed ? "model-sealed" : "model",
            .corpus = {file(path)},
            .read =
                [path](const Bytes& bytes) {
                    put(path, bytes);
                    std::vector<std::string> problems;
                    static_cast<void>(store::read_model(path, problems, OnDamage::set_aside));
                },
            .repair = sealed ? seal : [](Bytes&) {},
            .uses_hdf5 = true};
}

Target order() {
    evaluate::Order start;
    start.kind = evaluate::Order::Kind::start;
    start.individual = store::samples::individual(8, mnist_space());
    start.snapshot = {{"0.weight", {2, 3}, std::vector<float>(6)}, {"step", {}, std::vector<std::int64_t>{5}}};
    evaluate::Order advance;
    advance.kind = evaluate::Order::Kind::advance;
    advance.batches = 5;
    advance.worked = 0.25;
    return {"order", {encode(start), encode(advance)}, [](const Bytes& bytes) {
                static_cast<void>(evaluate::decode_order(bytes));
            }};
}

/// Creates a target of lines that an evaluated program prints.
Target report() {
    return {"report",
            {bytes_of("finch loss=0.31 epoch=3 accuracy=0.9"), bytes_of("finch {\"loss\": 0.31, \"epoch\": 4e1}"),
             bytes_of("finch stop?"), bytes_of("finch done 0.1.2"), bytes_of("finch loss=nan a=-inf b=1e999")},
            [](const Bytes& bytes) {
                const std::string text = text_of(bytes);
                static_cast<void>(evaluate::read_report_line(text));
                static_cast<void>(evaluate::read_report_line("finch " + text));
                if (printable(printable(text)) != printable(text)) {
                    throw std::logic_error("printable text changes when it is made printable");
                }
            }};
}

/// Creates a target of a user's command and file template.
Target command() {
    return {
        "command",
        {bytes_of("python 'a b.py' --lr={lr} \"{id} \\\" {{x}}\""), bytes_of("{\"a\": {lr}, \"b\": {{lr}} {seed}}")},
        [](const Bytes& bytes) {
            const std::string text = text_of(bytes);
            const std::map<std::string, std::string> values{{"lr", "0.1"}, {"id", "0.1.2"}, {"seed", "5"}};
            static_cast<void>(quoted_for_shell(text));
            for (const auto braces : {config::Template::Braces::literal, config::Template::Braces::doubled}) {
                static_cast<void>(config::Template(text, {"lr", "id", "seed"}, braces).render(values));
            }
            for (const std::string& word : config::split_command(text)) {
                static_cast<void>(config::Template(word, {"lr", "id", "seed"}, config::Template::Braces::doubled));
            }
        }};
}

Target environment() {
    return {"environment",
            {bytes_of("n[1-3,07],gpu4\n2(x3),1\n0"), bytes_of("rack[08-10]-a\n4(x3)\n2"),
             bytes_of("n[1-9999]\n9(x9999)\n1"), bytes_of("n[1-99999]\n9(x9999)\n1")},
            [](const Bytes& bytes) {
                const std::string text = text_of(bytes);
                const std::size_t first = std::min(text.find('\n'), text.size());
                const std::size_t second = std::min(text.find('\n', first + 1), text.size());
                const std::string counts = text.substr(std::min(first + 1, text.size()), second - first);
                const cluster::Environment given({{"SLURM_JOB_NODELIST", text.substr(0, first)},
                                                  {"SLURM_TASKS_PER_NODE", counts},
                                                  {"SLURM_STEP_TASKS_PER_NODE", counts},
                                                  {"SLURM_NODEID", text.substr(second)}});
                static_cast<void>(cluster::node_is_crowded(given, 2));
                static_cast<void>(cluster::Slurm::read(given));
                static_cast<void>(cluster::ranks_of_allocation(given));
            }};
}

}  // namespace

std::vector<Target> targets(const std::string& folder) {
    const fs::path place(folder);
    return {yaml(),
            setting(),
            idx(place, "train-images-idx3-ubyte"),
            idx(place, "train-labels-idx1-ubyte"),
            cifar(place),
            images(place),
            numbers(place),
            archive(place, false),
            archive(place, true),
            model(place, false),
            model(place, true),
            {"journal", {records()}, read_records},
            {"journal-sealed", {records()}, read_records, correct_records},
            order(),
            report(),
            command(),
            environment(),
            image_files()};
}

}  // namespace finch::fuzz
