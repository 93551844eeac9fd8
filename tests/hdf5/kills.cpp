#include "finch/base/random.hpp"
#include "finch/hdf5/file.hpp"

#include "support/temporary_folder.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace finch;
using testing::TemporaryFolder;

namespace {

/// Writes files with the numbers from `first` on in an endless loop, in memory and directly to the disk in turn. Writes
/// a byte to the pipe `told` after each file.
[[noreturn]] void write_for_ever(const std::filesystem::path& path, std::int64_t first, int told) {
    for (std::int64_t number = first;; ++number) {
        const auto fill = [&](hid_t file) {
            hdf5::write_attribute(file, "number", number);
            hdf5::write_array(file, {"values", {20000}, std::vector<double>(20000, static_cast<double>(number))});
        };
        (number % 2 == 0 ? hdf5::write_file : hdf5::write_large_file)(path, fill, {});
        static_cast<void>(::write(told, "x", 1));
    }
}

void wait_for(int told, std::uint64_t files) {
    char byte = 0;
    for (std::uint64_t file = 0; file < files; ++file) {
        REQUIRE(::read(told, &byte, 1) == 1);
    }
}

}  // namespace

TEST_CASE("kill -9 at any moment of a write leaves a complete file: the old or the new one") {
    const TemporaryFolder folder;
    const auto path = folder / "a.h5";
    RandomStream random(1, Purpose::test);
    std::int64_t before = 0;

    for (int kill_number = 0; kill_number < 40; ++kill_number) {
        int told[2];
        REQUIRE(::pipe(told) == 0);
        const pid_t writer = ::fork();
        if (writer == 0) {
            write_for_ever(path, before + 1, told[1]);
        }
        ::close(told[1]);
        // On any machine, one to four files are complete before the kill, and the next file has been started.
        wait_for(told[0], 1 + random.below(4));
        ::usleep(static_cast<useconds_t>(random.below(3000)));
        ::kill(writer, SIGKILL);
        ::waitpid(writer, nullptr, 0);
        ::close(told[0]);
        const hdf5::Hid file = hdf5::open_file(path);
        const std::int64_t number = hdf5::read_int_attribute(file.get(), "number");
        const auto values = std::get<std::vector<double>>(hdf5::read_array(file.get(), "values").values);
        CHECK(number > before);
        CHECK(values == std::vector<double>(20000, static_cast<double>(number)));
        before = number;
    }

    CHECK(before >= 40);
}
