#include "finch/hdf5/file.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"

#include "support/temporary_folder.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace finch;
using testing::contents;
using testing::put_contents;
using testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

void write_number(const fs::path& path, std::int64_t number) {
    hdf5::write_file(path, [&](hid_t file) {
        hdf5::write_attribute(file, "number", number);
        hdf5::write_array(file, {"group/values", {100}, std::vector<double>(100, static_cast<double>(number))});
    });
}

std::int64_t read_number(const fs::path& path) {
    return hdf5::read_int_attribute(hdf5::open_file(path).get(), "number");
}

/// Limits the size of written files to `bytes`. Longer writes fail like on a full disk.
class FileSizeLimit {
public:
    explicit FileSizeLimit(rlim_t bytes) {
        std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

private:
    rlimit before_{};
};

}  // namespace

TEST_CASE("a written file can be read by Finch and by h5dump") {
    const TemporaryFolder folder;

    write_number(folder / "a.h5", 7);

    CHECK(read_number(folder / "a.h5") == 7);
    const auto dumped = testing::run("h5dump -a number " + (folder / "a.h5").string());
    CHECK(dumped.code == 0);
    CHECK(dumped.text.find("(0): 7") != std::string::npos);
    const auto values = testing::run("h5dump -d /group/values " + (folder / "a.h5").string());
    CHECK(values.text.find("7, 7, 7\n") != std::string::npos);
}

TEST_CASE("a file with a flipped bit in any byte is refused") {
    const TemporaryFolder folder;
    write_number(folder / "a.h5", 7);
    const std::string good = contents(folder / "a.h5");

    std::size_t refused = 0;
    std::size_t tried = 0;
    for (std::size_t at = 0; at < good.size(); ++at) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
        put_contents(folder / "bad.h5", bad);
        ++tried;
        try {
            static_cast<void>(hdf5::open_file(folder / "bad.h5"));
        } catch (const FileError&) {
            ++refused;
        }
    }

    CHECK(good.size() > 1500);
    CHECK(refused == tried);
}

TEST_CASE("open_file describes why it refuses truncated, extended, empty, foreign and missing files") {
    const TemporaryFolder folder;
    write_number(folder / "a.h5", 7);
    const std::string good = contents(folder / "a.h5");
    const auto refusal = [&](const std::string& text) -> std::string {
        put_contents(folder / "bad.h5", text);
        try {
            static_cast<void>(hdf5::open_file(folder / "bad.h5"));
        } catch (const FileError& error) {
            return error.what();
        }
        return "accepted";
    };

    CHECK(refusal(good).find("accepted") == 0);
    CHECK(refusal(good.substr(0, good.size() - 1)).find("not the") != std::string::npos);
    CHECK(refusal(good + "x").find("not the") != std::string::npos);
    CHECK(refusal(good.substr(0, 100)).find("does not begin") != std::string::npos);
    CHECK(refusal("").find("empty") != std::string::npos);
    CHECK(refusal(std::string(5000, 'x')).find("does not begin") != std::string::npos);
    CHECK(refusal(std::string(5000, 'x')).find((folder / "bad.h5").string()) != std::string::npos);
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::open_file(folder / "none.h5")), doctest::Contains("no such file"),
                         FileError);
}

TEST_CASE("write_file keeps the previous file as a.h5.previous") {
    const TemporaryFolder folder;

    write_number(folder / "a.h5", 1);
    CHECK_FALSE(fs::exists(folder / "a.h5.previous"));
    write_number(folder / "a.h5", 2);
    write_number(folder / "a.h5", 3);

    CHECK(read_number(folder / "a.h5") == 3);
    CHECK(read_number(folder / "a.h5.previous") == 2);
    CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 2);
}

TEST_CASE("write_file succeeds despite leftover files of an interrupted write") {
    const TemporaryFolder folder;
    write_number(folder / "a.h5", 1);
    put_contents(folder / "a.h5.new", "half");
    fs::create_hard_link(folder / "a.h5", folder / "a.h5.previous");  // simulates a kill between link and rename
    fs::create_hard_link(folder / "a.h5", folder / "a.h5.previous.new");

    write_number(folder / "a.h5", 2);

    CHECK(read_number(folder / "a.h5") == 2);
    CHECK(read_number(folder / "a.h5.previous") == 1);
    write_number(folder / "a.h5", 3);
    CHECK(read_number(folder / "a.h5") == 3);
    CHECK(read_number(folder / "a.h5.previous") == 2);
    CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 2);
}

TEST_CASE("open_file_or_previous renames a damaged file, opens its predecessor and reports both steps") {
    const TemporaryFolder folder;
    write_number(folder / "a.h5", 1);
    write_number(folder / "a.h5", 2);
    std::string bad = contents(folder / "a.h5");
    bad[bad.size() / 2] ^= 4;
    put_contents(folder / "a.h5", bad);
    std::vector<std::string> problems;

    const auto file = hdf5::open_file_or_previous(folder / "a.h5", problems, OnDamage::set_aside);

    REQUIRE(file);
    CHECK(hdf5::read_int_attribute(file->get(), "number") == 1);
    CHECK(contents(folder / "a.h5.damaged") == bad);
    CHECK_FALSE(fs::exists(folder / "a.h5"));
    REQUIRE(problems.size() == 2);
    CHECK(problems[0].find((folder / "a.h5").string()) == 0);
}

TEST_CASE("open_file_or_previous opens nothing and reports both files if the predecessor is damaged too") {
    const TemporaryFolder folder;
    put_contents(folder / "a.h5", "rubbish");
    put_contents(folder / "a.h5.previous", "rubbish too");
    std::vector<std::string> problems;

    CHECK_FALSE(hdf5::open_file_or_previous(folder / "a.h5", problems, OnDamage::set_aside));
    CHECK(problems.size() == 2);
    problems.clear();
    CHECK_FALSE(hdf5::open_file_or_previous(folder / "none.h5", problems, OnDamage::set_aside));
    CHECK(problems.empty());
}

TEST_CASE("a full disk leaves the old file and its predecessor unchanged, without temporary files") {
    const TemporaryFolder folder;
    write_number(folder / "a.h5", 1);
    write_number(folder / "a.h5", 2);

    {
        const FileSizeLimit limit(100000);
        const std::vector<double> much(100000, 1.0);
        const auto fill = [&](hid_t file) { hdf5::write_array(file, {"much", {100000}, much}); };
        CHECK_THROWS_AS(hdf5::write_file(folder / "a.h5", fill), ApiError);
    }

    CHECK(read_number(folder / "a.h5") == 2);
    CHECK(read_number(folder / "a.h5.previous") == 1);
    CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 2);
    write_number(folder / "a.h5", 3);
    CHECK(read_number(folder / "a.h5") == 3);
}

TEST_CASE("a disk that becomes full at any offset leaves the old file unchanged, and later writes succeed") {
    const auto fill = [](hid_t file) {
        for (int array = 0; array < 20; ++array) {
            hdf5::write_array(file, {"array" + std::to_string(array), {500}, std::vector<double>(500, 1.0)});
        }
    };
    for (const auto write_to : {hdf5::write_file, hdf5::write_large_file}) {
        const auto write = [&](const fs::path& path, const auto& filling) { write_to(path, filling, {}); };
        const TemporaryFolder folder;
        write_number(folder / "a.h5", 1);

        for (rlim_t bytes = 0; bytes < 80000; bytes += 1111) {
            const FileSizeLimit limit(bytes);
            CHECK_THROWS_AS(write(folder / "a.h5", fill), ApiError);
        }

        CHECK(read_number(folder / "a.h5") == 1);
        CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
        write(folder / "a.h5", fill);
        const auto last = hdf5::read_array(hdf5::open_file(folder / "a.h5").get(), "array19");
        CHECK(std::get<std::vector<double>>(last.values) == std::vector<double>(500, 1.0));
        CHECK(read_number(folder / "a.h5.previous") == 1);
    }
}

TEST_CASE("a failed write during H5Dclose is reported, even if all later writes succeed") {
    const TemporaryFolder folder;
    const auto write_with = [&](rlim_t bytes) {
        hdf5::write_large_file(folder / "a.h5", [bytes](hid_t file) {
            const hsize_t size = 10;
            const hdf5::Hid space(H5Screate_simple(1, &size, nullptr));
            hdf5::Hid set(
                H5Dcreate2(file, "few", H5T_NATIVE_DOUBLE, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            const std::vector<double> few(10, 2.0);
            REQUIRE(H5Dwrite(set.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, few.data()) >= 0);
            const FileSizeLimit limit(bytes);
            set.reset();  // HDF5 writes these elements only now, because they are few
        });
    };
    write_with(RLIM_INFINITY);
    CHECK(std::get<std::vector<double>>(hdf5::read_array(hdf5::open_file(folder / "a.h5").get(), "few").values) ==
          std::vector<double>(10, 2.0));

    CHECK_THROWS_WITH_AS(write_with(0), doctest::Contains("File too large"), StorageError);

    CHECK(std::get<std::vector<double>>(hdf5::read_array(hdf5::open_file(folder / "a.h5").get(), "few").values) ==
          std::vector<double>(10, 2.0));
}

TEST_CASE("a large file of 200 MB is written with less than 40 MB of memory") {
    const TemporaryFolder folder;
    const auto peak = [] {
        rusage used{};
        ::getrusage(RUSAGE_SELF, &used);
        return used.ru_maxrss;  // KiB
    };
    const std::vector<double> much(1'250'000, 1.0);  // 10 MB
    const auto before = peak();

    hdf5::write_large_file(folder / "a.h5", [&](hid_t file) {
        for (int array = 0; array < 20; ++array) {
            hdf5::write_array(file, {"array" + std::to_string(array), {1'250'000}, much});
        }
    });

    CHECK(fs::file_size(folder / "a.h5") > 200'000'000);
    CHECK(peak() - before < 40'000);
}

TEST_CASE("an exception while a file is filled leaves the old file unchanged") {
    const TemporaryFolder folder;
    write_number(folder / "a.h5", 1);

    CHECK_THROWS_WITH_AS(hdf5::write_file(folder / "a.h5", [](hid_t) { throw Error("no"); }), "no", Error);

    CHECK(read_number(folder / "a.h5") == 1);
    CHECK_FALSE(fs::exists(folder / "a.h5.previous"));
}

TEST_CASE("writing to a missing folder throws ApiError with the file name") {
    const TemporaryFolder folder;

    CHECK_THROWS_WITH_AS(write_number(folder / "no/a.h5", 1), doctest::Contains("no/a.h5.new"), ApiError);
}

TEST_CASE("a file that is open keeps its content if it is replaced, also if the new file is opened too") {
    const TemporaryFolder folder;
    write_number(folder / "a.h5", 1);
    const hdf5::Hid old = hdf5::open_file(folder / "a.h5");

    write_number(folder / "a.h5", 2);
    const hdf5::Hid fresh = hdf5::open_file(folder / "a.h5");

    CHECK(hdf5::read_int_attribute(old.get(), "number") == 1);
    CHECK(hdf5::read_int_attribute(fresh.get(), "number") == 2);
    CHECK(hdf5::file_bytes(fresh.get()) == fs::file_size(folder / "a.h5"));
}

TEST_CASE("open_plain_file opens HDF5 files without Finch's checksum, and refuses other files") {
    const TemporaryFolder folder;
    {
        const hdf5::Hid file(H5Fcreate((folder / "theirs.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        hdf5::write_attribute(file.get(), "number", std::int64_t{5});
    }
    put_contents(folder / "text.h5", "no HDF5 at all");

    CHECK(hdf5::read_int_attribute(hdf5::open_plain_file(folder / "theirs.h5").get(), "number") == 5);
    CHECK_THROWS_AS(static_cast<void>(hdf5::open_plain_file(folder / "text.h5")), FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::open_plain_file(folder / "none.h5")),
                         doctest::Contains("no such file"), FileError);
    CHECK_THROWS_AS(static_cast<void>(hdf5::open_file(folder / "theirs.h5")), FileError);
}

TEST_CASE("an ApiError contains HDF5's innermost message, and HDF5 prints nothing") {
    hdf5::prepare();

    CHECK_THROWS_WITH_AS(hdf5::check(H5Fopen("/nowhere/at/all.h5", H5F_ACC_RDONLY, H5P_DEFAULT), "opening it"),
                         doctest::Contains("opening it: unable to open file"), ApiError);
}
