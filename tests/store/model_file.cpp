#include "finch/store/model_file.hpp"

#include "finch/base/error.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace finch;
using namespace finch::store;
using testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

ModelFile model(std::uint32_t number) {
    return {samples::individual(number, samples::mnist_space()),
            "conv_layers = 2",
            {{"weights/0.weight", {2, 1, 3}, std::vector<float>{1, 2, 3, 4, 5, -0.0F}},
             {"individual", {}, std::vector<std::int64_t>{9}},
             {"curve", {1, 2}, std::vector<double>{0.1, samples::strange_nan()}}}};
}

}  // namespace

TEST_CASE("round trip: an individual and its named arrays are bitwise equal") {
    const TemporaryFolder folder;
    ModelFile written = model(3);
    written.classes = {"a cat", "größe"};
    std::vector<std::string> problems;

    write_model(folder / "best.h5", written);
    const auto read = read_model(folder / "best.h5", problems, OnDamage::set_aside);

    REQUIRE(read);
    CHECK(problems.empty());
    CHECK(search::identical(read->individual, written.individual));
    CHECK(read->genome == written.genome);
    CHECK(read->classes == written.classes);
    REQUIRE(read->arrays.size() == 3);
    for (const NamedArray& array : written.arrays) {
        const NamedArray& found = find_array(read->arrays, array.name);
        CHECK(found.shape == array.shape);
        CHECK(found.values.index() == array.values.index());
    }
    const auto& curve = std::get<std::vector<double>>(find_array(read->arrays, "curve").values);
    CHECK(samples::same_bits(curve.at(1), samples::strange_nan()));
    CHECK(find_array(read->arrays, "weights/0.weight").values == written.arrays[0].values);
}

TEST_CASE("h5dump finds the weights under PyTorch's names, and prints genes with their names") {
    const TemporaryFolder folder;
    write_model(folder / "best.h5", model(3));

    const auto weights = testing::run("h5dump -d /weights/0.weight " + (folder / "best.h5").string());
    const auto genome = testing::run("h5dump -d /finch/genome " + (folder / "best.h5").string());

    CHECK(weights.text.find("( 2, 1, 3 )") != std::string::npos);
    CHECK(genome.text.find("conv_layers = 2") != std::string::npos);
}

TEST_CASE("a damaged model is replaced by its predecessor; without one, only the problem is reported") {
    const TemporaryFolder folder;
    const auto path = folder / "a.h5";
    std::vector<std::string> problems;
    CHECK_FALSE(read_model(path, problems, OnDamage::set_aside));
    CHECK(problems.empty());

    write_model(path, model(3));
    write_model(path, model(4));
    testing::put_contents(path, "rubbish");
    const auto read = read_model(path, problems, OnDamage::set_aside);
    REQUIRE(read);
    CHECK(read->individual.id == model(3).individual.id);
    CHECK_FALSE(problems.empty());

    problems.clear();
    testing::put_contents(folder / "b.h5", "rubbish");
    CHECK_FALSE(read_model(folder / "b.h5", problems, OnDamage::set_aside));
    CHECK(problems.size() == 1);
}

TEST_CASE("remove_model removes the file, its predecessor and its temporary file") {
    const TemporaryFolder folder;
    write_model(folder / "a.h5", model(1));
    write_model(folder / "a.h5", model(1));
    testing::put_contents(folder / "a.h5.new", "half");

    remove_model(folder / "a.h5");
    remove_model(folder / "a.h5");

    CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("remove_model keeps the model if it cannot remove the predecessor, so a later call can try again") {
    const TemporaryFolder folder;
    write_model(folder / "a.h5", model(1));
    fs::create_directory(folder / "a.h5.previous");
    testing::put_contents(folder / "a.h5.previous" / "in the way", "");

    remove_model(folder / "a.h5");
    CHECK(fs::exists(folder / "a.h5"));

    fs::remove(folder / "a.h5.previous" / "in the way");
    remove_model(folder / "a.h5");
    CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("an array with a name in the reserved group finch/ throws Error") {
    const TemporaryFolder folder;
    ModelFile wrong = model(1);
    wrong.arrays.push_back({"finch/mine", {}, std::vector<double>{1}});

    CHECK_THROWS_AS(write_model(folder / "a.h5", wrong), Error);
}

TEST_CASE("why_foreign: describes a model of another run or individual; run 0 (an older file) fits any run") {
    ModelFile one = model(1);
    CHECK(why_foreign(one, 7, one.individual).empty());
    one.run = 7;
    CHECK(why_foreign(one, 7, one.individual).empty());
    CHECK(why_foreign(one, 8, one.individual).find("another run") != std::string::npos);
    CHECK(why_foreign(one, 7, model(2).individual).find("individual") != std::string::npos);
    search::Individual other = one.individual;
    other.genome.front() += 1;
    CHECK(why_foreign(one, 7, other).find("other genes") != std::string::npos);
}

TEST_CASE("round trip: the run number of a model file") {
    const TemporaryFolder folder;
    ModelFile one = model(1);
    one.run = 0xfedcba9876543210;
    write_model(folder / "a.h5", one);

    std::vector<std::string> problems;
    const auto read = read_model(folder / "a.h5", problems, OnDamage::leave);

    REQUIRE(read);
    CHECK(read->run == one.run);
}

TEST_CASE("symbolic links in place of the temporary file and predecessor are replaced; targets stay unchanged") {
    const TemporaryFolder folder;
    write_model(folder / "a.h5", model(1));
    testing::put_contents(folder / "precious", "do not empty me");
    for (const char* name : {"a.h5.new", "a.h5.previous", "a.h5.previous.new"}) {
        fs::remove(folder / name);
        fs::create_symlink(folder / "precious", folder / name);
    }

    write_model(folder / "a.h5", model(2));

    CHECK(testing::contents(folder / "precious") == "do not empty me");
    std::vector<std::string> problems;
    CHECK(read_model(folder / "a.h5", problems, OnDamage::leave)->individual.id == model(2).individual.id);
    CHECK(problems.empty());
}

TEST_CASE("a FIFO or a device in place of a model file is refused without blocking") {
    const TemporaryFolder folder;
    REQUIRE(::mkfifo((folder / "a.h5").c_str(), 0600) == 0);
    fs::create_symlink("/dev/zero", folder / "b.h5");
    std::vector<std::string> problems;

    CHECK_FALSE(read_model(folder / "a.h5", problems, OnDamage::set_aside));
    CHECK_FALSE(read_model(folder / "b.h5", problems, OnDamage::set_aside));

    REQUIRE(problems.size() == 2);
    CHECK(problems[0].find("a FIFO") != std::string::npos);
    CHECK(problems[1].find("a device") != std::string::npos);
}
