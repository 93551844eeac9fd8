#include "finch/base/error.hpp"
#include "finch/pytorch/network.hpp"
#include "finch/pytorch/state_dict.hpp"

#include "pytorch/networks.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <set>

using namespace finch;

namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const fs::path& folder) {
    std::set<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        names.insert(entry.path().filename().string());
    }
    return names;
}

std::string as_text(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("write_folder writes the four files, also into an empty folder and below new folders") {
    const testing::TemporaryFolder folder;
    const pytorch::Network network = test::linear_network();
    fs::create_directory(folder / "empty");

    for (const std::string name : {"best", "empty", "new/slash/"}) {
        pytorch::write_folder(folder / name, network);

        CHECK(names_in(folder / name) ==
              std::set<std::string>{"example.py", "model.pt", "model.py", "model.safetensors"});
        CHECK(testing::contents(folder / name / "model.py") == pytorch::model_source(network));
        CHECK(testing::contents(folder / name / "model.pt") == as_text(pytorch::torch_archive(network.weights)));
    }
    CHECK(names_in(folder.path()) == std::set<std::string>{"best", "empty", "new"});
}

TEST_CASE("write_folder refuses a file, a folder with files and the rest of an interrupted export") {
    const testing::TemporaryFolder folder;
    testing::put_contents(folder / "file", "mine");
    fs::create_directories(folder / "full");
    testing::put_contents(folder / "full/model.py", "mine");
    fs::create_directories(folder / "best.new");

    CHECK_THROWS_AS(pytorch::write_folder(folder / "file", test::linear_network()), ConfigError);
    CHECK_THROWS_AS(pytorch::write_folder(folder / "full", test::linear_network()), ConfigError);
    CHECK_THROWS_AS(pytorch::write_folder(folder / "best", test::linear_network()), ConfigError);
    CHECK_THROWS_AS(pytorch::write_folder(folder / "file/best", test::linear_network()), ConfigError);

    CHECK(testing::contents(folder / "file") == "mine");
    CHECK(testing::contents(folder / "full/model.py") == "mine");
    CHECK(names_in(folder.path()) == std::set<std::string>{"best.new", "file", "full"});
}

TEST_CASE("write_folder leaves nothing behind if it fails") {
    const testing::TemporaryFolder folder;
    pytorch::Network network = test::linear_network();
    network.weights.push_back({"1.bytes", {1}, std::vector<std::uint8_t>{1}});

    CHECK_THROWS_AS(pytorch::write_folder(folder / "best", network), FileError);

    CHECK(names_in(folder.path()).empty());
}
