#include "finch/base/log.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace finch {
namespace {

std::string text_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

/// Redirects standard output to a file during its lifetime.
class RedirectedOutput {
public:
    explicit RedirectedOutput(const std::filesystem::path& path) {
        std::fflush(stdout);
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(file, STDOUT_FILENO);
        ::close(file);
    }
    ~RedirectedOutput() {
        std::fflush(stdout);
        ::dup2(before_, STDOUT_FILENO);
        ::close(before_);
    }
    RedirectedOutput(const RedirectedOutput&) = delete;
    RedirectedOutput& operator=(const RedirectedOutput&) = delete;

private:
    int before_ = ::dup(STDOUT_FILENO);
};

}  // namespace

TEST_CASE("log: a file replaces standard output; with tee both get the same lines; other ranks have own files") {
    const testing::TemporaryFolder folder;
    const auto before = spdlog::default_logger();
    const auto say = [&](const std::string& name, bool tee, int rank) {
        const RedirectedOutput output(folder / (name + ".out"));
        set_up_log({.ranks = LogRanks::all, .path = folder / name, .tee = tee}, rank, false);
        spdlog::info("hello {}", name);
        spdlog::set_default_logger(before);
    };

    say("one", false, 0);
    say("two", true, 0);
    say("three", true, 3);

    CHECK(text_of(folder / "one").find("hello one\n") != std::string::npos);
    CHECK(text_of(folder / "one.out").empty());
    CHECK(text_of(folder / "two").find("hello two\n") != std::string::npos);
    CHECK(text_of(folder / "two") == text_of(folder / "two.out"));
    CHECK(text_of(folder / "three.3") == text_of(folder / "three.out"));
    CHECK(text_of(folder / "three.3").find("[3] hello three\n") != std::string::npos);
}

}  // namespace finch
