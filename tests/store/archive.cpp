#include "finch/store/archive.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/table.hpp"
#include "finch/search/individual.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <set>
#include <sys/resource.h>

using namespace finch;
using namespace finch::store;
using testing::TemporaryFolder;

namespace {

Archive read(const std::filesystem::path& path) {
    std::vector<std::string> problems;
    auto archive = read_archive(path, problems, OnDamage::set_aside);
    REQUIRE(archive);
    CHECK(problems.empty());
    return std::move(*archive);
}

void check_equal(const Archive& archive, const search::Population& population) {
    REQUIRE(archive.individuals.size() == population.size());
    const bool individuals =
        std::all_of(archive.individuals.begin(), archive.individuals.end(), [&](const search::Individual& individual) {
            const search::Individual* known = population.find(individual.id);
            return known != nullptr && search::identical(individual, *known);
        });
    CHECK(individuals);
    const std::map<search::Id, search::Home> homes(archive.homes.begin(), archive.homes.end());
    CHECK(homes == population.homes());
    const std::set<std::pair<search::Id, std::int32_t>> memberships(archive.memberships.begin(),
                                                                    archive.memberships.end());
    CHECK(memberships == population.memberships());
}

void check_round_trip(const search::Space& space, std::uint32_t individuals) {
    const TemporaryFolder folder;
    const search::Population population = samples::population(individuals, space);

    write_archive(folder / "population.h5", space, population, samples::facts());
    const Archive archive = read(folder / "population.h5");

    CHECK(archive.space == space);
    check_equal(archive, population);
}

search::Space space_of(std::size_t genes, std::size_t options) {
    search::Space space;
    for (std::size_t i = 0; i < genes; ++i) {
        search::Gene gene{"gene_number_" + std::to_string(i), search::RealGene{-1, 1}};
        if (i % 3 == 1) {
            gene.kind = search::IntGene{-5, std::int64_t{1} << 50};
        } else if (i % 3 == 2) {
            search::ChoiceGene choice;
            for (std::size_t option = 0; option < options; ++option) {
                choice.options.push_back("option_" + std::to_string(option));
            }
            gene.kind = choice;
        }
        space.genes.push_back(gene);
    }
    return space;
}

}  // namespace

TEST_CASE("curves that exist only in the archive file are copied into every later archive") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    search::Population expected = samples::population(200, space);
    write_archive(path, space, expected, samples::facts());
    search::Population population = expected;
    for (const auto& [id, individual] : expected.individuals()) {
        population.forget_curve(id);
    }

    for (std::uint32_t number = 203; number < 1000; number += 200) {
        expected.merge(samples::individual(number, space));
        population.merge(samples::individual(number, space));
        write_archive(path, space, population, samples::facts());
    }

    check_equal(read(path), expected);
}

TEST_CASE("an archive above 16 MiB is written directly to the disk, and its curves are copied into the next one") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    search::Population expected = samples::population(50, space);
    search::Individual longest = samples::individual(77, space);
    longest.curve.assign(400'000, Epoch{.epoch = 1});
    expected.merge(longest);
    write_archive(path, space, expected, samples::facts());
    REQUIRE(std::filesystem::file_size(path) > (std::uintmax_t{16} << 20));
    search::Population population = expected;
    for (const auto& [id, individual] : expected.individuals()) {
        population.forget_curve(id);
    }

    write_archive(path, space, population, samples::facts());

    check_equal(read(path), expected);
}

TEST_CASE("a curve in memory replaces the curve of the same individual in the archive") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    write_archive(path, space, samples::population(50, space), samples::facts());
    search::Population population = samples::population(50, space);
    search::Individual longer = samples::individual(7, space);
    longer.curve.resize(9);
    population.merge(longer);

    write_archive(path, space, population, samples::facts());

    check_equal(read(path), population);
}

TEST_CASE("if the archive is damaged during the run, the curves are copied from its predecessor") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    const search::Population expected = samples::population(100, space);
    write_archive(path, space, expected, samples::facts());
    write_archive(path, space, expected, samples::facts());
    search::Population population = expected;
    for (const auto& [id, individual] : expected.individuals()) {
        population.forget_curve(id);
    }
    testing::put_contents(path, "rubbish");

    write_archive(path, space, population, samples::facts());

    check_equal(read(path), expected);
}

TEST_CASE("curves are not copied from the archive of another run") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    ArchiveFacts other = samples::facts();
    other.run = 1;
    write_archive(path, space, samples::population(20, space), other);
    search::Population population = samples::population(20, space);
    for (const auto& [id, individual] : population.individuals()) {
        population.forget_curve(id);
    }

    write_archive(path, space, population, samples::facts());

    check_equal(read(path), population);
}

TEST_CASE("round trip: individuals, curves, homes and memberships are bitwise equal") {
    check_round_trip(samples::mnist_space(), 3000);
}

TEST_CASE("round trip: archives without individuals, without genes and with 500 genes") {
    check_round_trip(samples::mnist_space(), 0);
    check_round_trip({}, 20);
    check_round_trip({}, 0);
    check_round_trip(space_of(500, 4), 50);
}

TEST_CASE("round trip: facts, events and reports") {
    const TemporaryFolder folder;
    ArchiveFacts written = samples::facts();
    written.budget_epochs = 600;
    written.reused_runs = {{7, "/where/a"}, {std::uint64_t{1} << 63, "/where/\"b\" ü"}};

    write_archive(folder / "population.h5", {}, samples::population(0, {}), written);
    const ArchiveFacts facts = read(folder / "population.h5").facts;

    CHECK(facts.run == written.run);
    CHECK(facts.seed == written.seed);
    CHECK(facts.restarts == written.restarts);
    CHECK(facts.config == written.config);
    CHECK(facts.data_fingerprint == written.data_fingerprint);
    CHECK(facts.workers == written.workers);
    CHECK(facts.islands == written.islands);
    CHECK(facts.state == written.state);
    CHECK(facts.budget_evaluations == written.budget_evaluations);
    CHECK(facts.budget_epochs == 600);
    CHECK(facts.starts == written.starts);
    CHECK(facts.reused_runs == written.reused_runs);
    CHECK_FALSE(facts.program_version.empty());
    REQUIRE(facts.events.size() == written.events.size());
    for (std::size_t i = 0; i < facts.events.size(); ++i) {
        CHECK(samples::same(facts.events[i], written.events[i]));
    }
    REQUIRE(facts.reports.size() == written.reports.size());
    for (const auto& [key, report] : written.reports) {
        REQUIRE(facts.reports.contains(key));
        CHECK(samples::same(facts.reports.at(key), report));
    }
}

TEST_CASE("round trip: bounds, scales, kinds and words of a space, also integers above 2^53") {
    const TemporaryFolder folder;
    const std::int64_t large = (std::int64_t{1} << 53) + 1;
    const search::Space space{{{"whole", search::IntGene{-large, large}},
                               {"log whole", search::IntGene{1, 64, search::Scale::log}},
                               {"fixed", search::RealGene{0.9, 0.9}},
                               {"fixed whole", search::IntGene{3, 3}},
                               {"größe", search::RealGene{1e-300, 0.1, search::Scale::log}},
                               {"one word", search::ChoiceGene{{"with, comma"}}}}};

    write_archive(folder / "population.h5", space, samples::population(3, space), samples::facts());

    CHECK(read(folder / "population.h5").space == space);
}

TEST_CASE("all columns of /individuals that are not genes are reserved names") {
    const TemporaryFolder folder;
    write_archive(folder / "population.h5", {}, samples::population(2, {}), samples::facts());
    const hdf5::Hid file = hdf5::open_file(folder / "population.h5");
    const hdf5::Hid table(H5Dopen2(file.get(), "individuals", H5P_DEFAULT));
    const hdf5::Hid type(H5Dget_type(table.get()));

    const std::vector<std::string>& reserved = search::reserved_columns();
    const int columns = H5Tget_nmembers(type.get());
    CHECK(columns > 20);
    for (int i = 0; i < columns; ++i) {
        char* name = H5Tget_member_name(type.get(), static_cast<unsigned>(i));
        CHECK_MESSAGE(std::find(reserved.begin(), reserved.end(), name) != reserved.end(), name);
        H5free_memory(name);
    }
}

TEST_CASE("a space that does not fit into a table row throws ConfigError") {
    const TemporaryFolder folder;
    const search::Space space = space_of(500, 60);

    CHECK_THROWS_WITH_AS(write_archive(folder / "population.h5", space, samples::population(1, space), {}),
                         doctest::Contains("search.space"), ConfigError);
}

TEST_CASE("an archive with a newer format is refused, naming both versions, and is not renamed") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    hdf5::write_file(path, [](hid_t file) {
        hdf5::write_attribute(file, "format", "finch population");
        hdf5::write_attribute(file, "version", std::int64_t{search::individual_version} + 1);
        hdf5::write_attribute(file, "program_version", "99.1");
    });

    std::vector<std::string> problems;
    CHECK_THROWS_WITH_AS(static_cast<void>(read_archive(path, problems, OnDamage::set_aside)),
                         doctest::Contains("has format version 3, written by finch 99.1"), FileError);
    CHECK(std::filesystem::exists(path));
}

TEST_CASE("a damaged archive is replaced by its predecessor, and the damage is reported") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    const search::Population before = samples::population(10, space);
    write_archive(path, space, before, samples::facts());
    write_archive(path, space, samples::population(20, space), samples::facts());
    std::string bytes = testing::contents(path);
    bytes[bytes.size() - 100] ^= 1;
    testing::put_contents(path, bytes);

    std::vector<std::string> problems;
    const auto archive = read_archive(path, problems, OnDamage::set_aside);

    REQUIRE(archive);
    check_equal(*archive, before);
    CHECK(problems.size() == 2);
}

TEST_CASE("an archive with an external link instead of curves or metrics is refused, also with Curves::leave") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    for (const std::string name : {"curves", "metrics"}) {
        write_archive(folder / "whole.h5", space, samples::population(20, space), samples::facts());
        hdf5::write_file(path, [&](hid_t file) {
            const hdf5::Hid whole = hdf5::open_file(folder / "whole.h5");
            hsize_t objects = 0;
            H5Gget_num_objs(whole.get(), &objects);
            for (hsize_t i = 0; i < objects; ++i) {
                std::array<char, 64> object{};
                H5Gget_objname_by_idx(whole.get(), i, object.data(), object.size());
                if (object.data() != name) {
                    H5Ocopy(whole.get(), object.data(), file, object.data(), H5P_DEFAULT, H5P_DEFAULT);
                }
            }
            H5Aiterate2(
                whole.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
                [](hid_t from, const char* attribute, const H5A_info_t*, void* to) -> herr_t {
                    const hdf5::Hid one(H5Aopen(from, attribute, H5P_DEFAULT));
                    const hdf5::Hid type(H5Aget_type(one.get()));
                    const hdf5::Hid shape(H5Aget_space(one.get()));
                    std::vector<std::byte> value(H5Tget_size(type.get()));
                    H5Aread(one.get(), type.get(), value.data());
                    const hdf5::Hid copy(H5Acreate2(*static_cast<hid_t*>(to), attribute, type.get(), shape.get(),
                                                    H5P_DEFAULT, H5P_DEFAULT));
                    const herr_t written = H5Awrite(copy.get(), type.get(), value.data());
                    H5Dvlen_reclaim(type.get(), shape.get(), H5P_DEFAULT, value.data());
                    return written;
                },
                &file);
            H5Lcreate_external((folder / "whole.h5").c_str(), name.c_str(), file, name.c_str(), H5P_DEFAULT,
                               H5P_DEFAULT);
        });
        for (const Curves curves : {Curves::read, Curves::leave}) {
            std::vector<std::string> problems;
            CHECK_THROWS_WITH_AS(static_cast<void>(read_archive(path, problems, OnDamage::leave, curves)),
                                 doctest::Contains((name + " cannot be opened: ").c_str()), FileError);
        }
    }
}

TEST_CASE("read_archive throws each time if a damaged archive has no predecessor") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    std::vector<std::string> problems;
    CHECK_FALSE(read_archive(path, problems, OnDamage::set_aside));
    CHECK(problems.empty());

    testing::put_contents(path, "rubbish");

    CHECK_THROWS_AS(static_cast<void>(read_archive(path, problems, OnDamage::set_aside)), FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(read_archive(path, problems, OnDamage::set_aside)),
                         doctest::Contains("population.h5.damaged"), FileError);
}

TEST_CASE("a full disk throws ApiError and leaves the old archive unchanged") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    const search::Population before = samples::population(10, space);
    write_archive(path, space, before, samples::facts());

    std::signal(SIGXFSZ, SIG_IGN);
    rlimit unlimited{};
    ::getrlimit(RLIMIT_FSIZE, &unlimited);
    const rlimit small{150000, unlimited.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    CHECK_THROWS_AS(write_archive(path, space, samples::population(2000, space), samples::facts()), ApiError);
    ::setrlimit(RLIMIT_FSIZE, &unlimited);

    check_equal(read(path), before);
}

TEST_CASE("a symbolic link named population.h5.new is replaced, and its target is not changed") {
    const TemporaryFolder folder;
    const search::Space space = samples::mnist_space();
    const search::Population population = samples::population(3, space);
    testing::put_contents(folder / "precious", "do not empty me");
    std::filesystem::create_symlink(folder / "precious", folder / "population.h5.new");

    write_archive(folder / "population.h5", space, population, samples::facts());

    CHECK(testing::contents(folder / "precious") == "do not empty me");
    CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / "population.h5")));
    check_equal(read(folder / "population.h5"), population);
}

TEST_CASE("write_archive throws Error for a genome that does not fit the space") {
    const TemporaryFolder folder;
    const search::Space space{{{"layers", search::IntGene{1, 9}}}};
    search::Individual individual;
    individual.id = {1};
    individual.genome = {2.5};
    search::Population population(search::ExchangeKind::none, 1);
    population.merge(individual);

    CHECK_THROWS_WITH_AS(write_archive(folder / "population.h5", space, population, {}),
                         doctest::Contains("0.0.1 has 2.5"), Error);
    CHECK_THROWS_WITH_AS(write_archive(folder / "population.h5", {}, population, {}),
                         doctest::Contains("has 1 genes, the search has 0"), Error);
}

TEST_CASE("prints the time to write and read 1 000, 20 000 and 100 000 individuals") {
    const TemporaryFolder folder;
    const search::Space space = samples::mnist_space();
    for (const std::uint32_t count : {1000U, 20000U, 100000U}) {
        search::Population population(search::ExchangeKind::none, 4);
        for (std::uint32_t number = 0; number < count; ++number) {
            search::Individual one = samples::individual(number, space);
            one.curve.clear();
            one.problem.clear();
            population.merge(one);
        }
        double fastest = 1e9;
        for (int i = 0; i < 5; ++i) {
            const double begin = steady_seconds();
            write_archive(folder / "population.h5", space, population, samples::facts());
            fastest = std::min(fastest, steady_seconds() - begin);
        }
        const double begin = steady_seconds();
        CHECK(read(folder / "population.h5").individuals.size() == count);
        const double reading = steady_seconds() - begin;
        MESSAGE(fmt::format("{} individuals, {} bytes: written in {:.2f} ms, read in {:.2f} ms", count,
                            std::filesystem::file_size(folder / "population.h5"), 1e3 * fastest, 1e3 * reading));
    }
}
