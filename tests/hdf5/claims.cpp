// Files with false or unsupported metadata. Each file is well-formed HDF5 that another program may have written.
#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"
#include "finch/hdf5/table.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <functional>
#include <sstream>

using namespace finch;
using doctest::Contains;
using testing::TemporaryFolder;

namespace {

using Sizes = std::vector<hsize_t>;

hdf5::Hid space_of(const Sizes& sizes) {
    return hdf5::Hid(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
}

hdf5::Hid new_file(const std::filesystem::path& path) {
    return hdf5::Hid(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
}

/// Creates a dataset of bytes with the shape `sizes` and the creation property list `creation`. Writes `written` to it
/// unless `written` is empty.
void put_bytes(hid_t file, const char* name, const Sizes& sizes, hid_t creation = H5P_DEFAULT,
               const std::vector<std::uint8_t>& written = {}) {
    const hdf5::Hid dataset(
        H5Dcreate2(file, name, H5T_STD_U8LE, space_of(sizes).get(), H5P_DEFAULT, creation, H5P_DEFAULT));
    REQUIRE(dataset);
    if (!written.empty()) {
        H5Dwrite(dataset.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, written.data());
    }
}

void put_attribute(hid_t file, const char* name, hid_t type, const Sizes& sizes, const void* values) {
    const hdf5::Hid attribute(H5Acreate2(file, name, type, space_of(sizes).get(), H5P_DEFAULT, H5P_DEFAULT));
    H5Awrite(attribute.get(), type, values);
}

hdf5::Hid creation_list() {
    return hdf5::Hid(H5Pcreate(H5P_DATASET_CREATE));
}

/// Fills a new file with `fill`. Returns the error message of read_array() for the dataset `name`, or an empty text.
std::string problem_of(const std::function<void(hid_t, const TemporaryFolder&)>& fill, const char* name = "images") {
    const TemporaryFolder folder;
    fill(new_file(folder / "a.h5").get(), folder);
    const hdf5::Hid file = hdf5::open_plain_file(folder / "a.h5");
    try {
        static_cast<void>(hdf5::read_array(file.get(), name));
    } catch (const FileError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("reading an attribute as a number or text refuses arrays, empty dataspaces and other types") {
    const TemporaryFolder folder;
    hdf5::write_file(folder / "a.h5", [](hid_t file) {
        const std::vector<std::uint64_t> many(500, 0x4141414141414141);
        put_attribute(file, "many", H5T_NATIVE_UINT64, {500}, many.data());
        const std::vector<double> reals(500);
        put_attribute(file, "reals", H5T_NATIVE_DOUBLE, {500}, reals.data());
        const char* const words[]{"a", "b"};
        hdf5::Hid text(H5Tcopy(H5T_C_S1));
        H5Tset_size(text.get(), H5T_VARIABLE);
        put_attribute(file, "words", text.get(), {2}, static_cast<const void*>(words));
        const hdf5::Hid none(H5Screate(H5S_NULL));
        const hdf5::Hid empty(H5Acreate2(file, "empty", H5T_NATIVE_INT64, none.get(), H5P_DEFAULT, H5P_DEFAULT));
        hdf5::write_attribute(file, "word", "text");
        hdf5::write_attribute(file, "number", std::int64_t{1});
    });
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");
    const auto refused = [](const auto& read, const char* what) {
        CHECK_THROWS_WITH_AS(static_cast<void>(read()), Contains(what), FileError);
    };

    refused([&] { return hdf5::read_unsigned_attribute(file.get(), "many"); }, "attribute many is no single number");
    refused([&] { return hdf5::read_int_attribute(file.get(), "many"); }, "attribute many");
    refused([&] { return hdf5::read_double_attribute(file.get(), "reals"); }, "attribute reals");
    refused([&] { return hdf5::read_text_attribute(file.get(), "words"); }, "attribute words is no single text");
    refused([&] { return hdf5::read_int_attribute(file.get(), "empty"); }, "attribute empty");
    refused([&] { return hdf5::read_int_attribute(file.get(), "word"); }, "attribute word is no single number");
    refused([&] { return hdf5::read_text_attribute(file.get(), "number"); }, "attribute number is no single text");
    refused([&] { return hdf5::read_double_attribute(file.get(), "number"); }, "attribute number");
}

TEST_CASE("read_text refuses text arrays and numbers; a text attribute of fixed length is read") {
    const TemporaryFolder folder;
    hdf5::write_file(folder / "a.h5", [](hid_t file) {
        hdf5::Hid text(H5Tcopy(H5T_C_S1));
        H5Tset_size(text.get(), 300);
        const hdf5::Hid list(
            H5Dcreate2(file, "list", text.get(), space_of({2}).get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        const std::string blanks(600, ' ');
        H5Dwrite(list.get(), text.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, blanks.data());
        const hdf5::Hid one(H5Screate(H5S_SCALAR));
        const hdf5::Hid fixed(H5Acreate2(file, "fixed", text.get(), one.get(), H5P_DEFAULT, H5P_DEFAULT));
        const std::string word = "NCHW" + std::string(296, '\0');
        H5Awrite(fixed.get(), text.get(), word.data());
        hdf5::write_array(file, {"number", {}, std::vector<double>{1}});
    });
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");

    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_text(file.get(), "list")), Contains("text list"), FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_text(file.get(), "number")), Contains("text number"), FileError);
    CHECK(hdf5::read_text_attribute(file.get(), "fixed") == "NCHW");
}

TEST_CASE("read_array refuses external and virtual datasets and links into other files") {
    CHECK(problem_of([](hid_t file, const TemporaryFolder& folder) {
              std::ofstream(folder / "secret.bin") << "secret";
              const hdf5::Hid creation = creation_list();
              H5Pset_external(creation.get(), (folder / "secret.bin").c_str(), 0, 6);
              put_bytes(file, "images", {6}, creation.get());
          }) == "images is stored outside of this file; copy it into the file");

    const auto put_source = [](const TemporaryFolder& folder) {
        put_bytes(new_file(folder / "other.h5").get(), "images", {3}, H5P_DEFAULT, {1, 2, 3});
    };
    CHECK(problem_of([&](hid_t file, const TemporaryFolder& folder) {
              put_source(folder);
              const hdf5::Hid creation = creation_list();
              H5Pset_virtual(creation.get(), space_of({3}).get(), (folder / "other.h5").c_str(), "images",
                             space_of({3}).get());
              put_bytes(file, "images", {3}, creation.get());
          }).find("images is a virtual dataset") == 0);

    CHECK(problem_of([&](hid_t file, const TemporaryFolder& folder) {
              put_source(folder);
              H5Lcreate_external((folder / "other.h5").c_str(), "images", file, "images", H5P_DEFAULT, H5P_DEFAULT);
          }).find("images cannot be opened") == 0);

    CHECK(problem_of([&](hid_t file, const TemporaryFolder& folder) {
              put_source(folder);
              H5Lcreate_external((folder / "other.h5").c_str(), "/", file, "away", H5P_DEFAULT, H5P_DEFAULT);
              H5Lcreate_soft("/away/images", file, "images", H5P_DEFAULT, H5P_DEFAULT);
          }).find("images cannot be opened") == 0);
}

TEST_CASE("a failed open is no absence: an object of a newer HDF5 is named with its remedy") {
    const TemporaryFolder folder;
    put_bytes(new_file(folder / "a.h5").get(), "images", {6}, H5P_DEFAULT, {1, 2, 3, 4, 5, 6});
    std::string bytes = (std::ostringstream() << std::ifstream(folder / "a.h5").rdbuf()).str();
    // A message of the type 8, a layout, of 24 bytes. Its first two bytes are its version and its class, contiguous.
    const std::size_t layout = bytes.find(std::string("\x08\0\x18\0\0\0\0\0\x03\x01", 10));
    REQUIRE(layout != std::string::npos);
    bytes[layout + 8] = 9;
    std::ofstream(folder / "a.h5") << bytes;
    const hdf5::Hid file = hdf5::open_plain_file(folder / "a.h5");

    CHECK(hdf5::has_object(file.get(), "images"));
    CHECK_FALSE(hdf5::has_object(file.get(), "no/images"));
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_array(file.get(), "images")),
                         Contains("images cannot be opened: bad version number for layout message; a newer HDF5 than"),
                         FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_array(file.get(), "no/images")),
                         "there is no no/images in this file", FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::has_object(file.get(), "images/part")),
                         Contains("images/part cannot be read"), FileError);
}

TEST_CASE("LargeTable refuses links to other files, unwritten data, impossible lengths and missing key columns") {
    const auto problem_of_table = [](const std::function<void(hid_t, const TemporaryFolder&)>& fill) {
        const TemporaryFolder folder;
        fill(new_file(folder / "a.h5").get(), folder);
        const hdf5::Hid file = hdf5::open_plain_file(folder / "a.h5");
        try {
            static_cast<void>(hdf5::LargeTable(file.get(), "curves", "individual"));
        } catch (const FileError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const auto put_table = [](hid_t file, hsize_t rows, const char* key, hid_t type, bool is_written) {
        const hdf5::Hid row(H5Tcreate(H5T_COMPOUND, 8));
        H5Tinsert(row.get(), key, 0, type);
        const hdf5::Hid dataset(
            H5Dcreate2(file, "curves", row.get(), space_of({rows}).get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        const std::vector<std::uint64_t> keys(is_written ? rows : 0);
        if (is_written) {
            H5Dwrite(dataset.get(), row.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, keys.data());
        }
    };

    CHECK(problem_of_table([&](hid_t file, const TemporaryFolder&) {
              put_table(file, 3, "individual", H5T_NATIVE_UINT64, true);
          }).empty());
    CHECK(problem_of_table([&](hid_t file, const TemporaryFolder& folder) {
              put_table(new_file(folder / "other.h5").get(), 3, "individual", H5T_NATIVE_UINT64, true);
              H5Lcreate_external((folder / "other.h5").c_str(), "curves", file, "curves", H5P_DEFAULT, H5P_DEFAULT);
          }).find("curves cannot be opened") == 0);
    CHECK(problem_of_table([&](hid_t file, const TemporaryFolder&) {
              put_table(file, 3, "individual", H5T_NATIVE_UINT64, false);
          }) == "curves was never written, or not all of it");
    CHECK(problem_of_table([&](hid_t file, const TemporaryFolder&) {
              put_table(file, hsize_t{1} << 59, "individual", H5T_NATIVE_UINT64, false);
          }).find("curves claims the shape") == 0);
    CHECK(problem_of_table([&](hid_t file, const TemporaryFolder&) {
              put_table(file, 3, "epoch", H5T_NATIVE_UINT64, true);
          }) == "curves has no column individual of whole numbers");
    CHECK(problem_of_table([&](hid_t file, const TemporaryFolder&) {
              put_table(file, 3, "individual", H5T_NATIVE_DOUBLE, true);
          }) == "curves has no column individual of whole numbers");
    CHECK(problem_of_table([&](hid_t file, const TemporaryFolder&) {
              put_bytes(file, "curves", {3}, H5P_DEFAULT, {1, 2, 3});
          }) == "curves is no table");
}

TEST_CASE("a soft link within the file is followed") {
    CHECK(problem_of([](hid_t file, const TemporaryFolder&) {
              put_bytes(file, "there", {3}, H5P_DEFAULT, {1, 2, 3});
              H5Lcreate_soft("/there", file, "images", H5P_DEFAULT, H5P_DEFAULT);
          }).empty());
}

TEST_CASE("unwritten and partly written datasets are refused; complete compressed chunks are read") {
    const auto chunked = [](hsize_t rows) {
        hdf5::Hid creation = creation_list();
        const Sizes chunk{rows, 10};
        H5Pset_chunk(creation.get(), 2, chunk.data());
        H5Pset_deflate(creation.get(), 9);
        return creation;
    };

    CHECK(problem_of([](hid_t file, const TemporaryFolder&) { put_bytes(file, "images", {6}); }) ==
          "images was never written, or not all of it");
    CHECK(problem_of([&](hid_t file, const TemporaryFolder&) {
              put_bytes(file, "images", {4, 10}, chunked(2).get());
              const hdf5::Hid dataset(H5Dopen2(file, "images", H5P_DEFAULT));
              const Sizes begin{0, 0};
              const Sizes count{2, 10};
              const hdf5::Hid half = space_of({4, 10});
              H5Sselect_hyperslab(half.get(), H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr);
              const std::vector<std::uint8_t> pixels(20, 1);
              H5Dwrite(dataset.get(), H5T_NATIVE_UINT8, space_of(count).get(), half.get(), H5P_DEFAULT, pixels.data());
          }) == "images was never written, or not all of it");
    CHECK(problem_of([&](hid_t file, const TemporaryFolder&) {
              put_bytes(file, "images", {5, 10}, chunked(2).get(), std::vector<std::uint8_t>(50, 1));
          }).empty());
}

TEST_CASE("the message for an unavailable filter has the filter's number") {
    CHECK(problem_of([](hid_t file, const TemporaryFolder&) {
              const hdf5::Hid creation = creation_list();
              const Sizes chunk{3};
              H5Pset_chunk(creation.get(), 1, chunk.data());
              H5Pset_filter(creation.get(), 511, H5Z_FLAG_OPTIONAL, 0, nullptr);
              put_bytes(file, "images", {3}, creation.get(), {1, 2, 3});
          }).find("images is packed by the filter 511") == 0);
}

TEST_CASE("a shape that is larger than the file can store is refused before memory is allocated") {
    const auto claims = [](const Sizes& sizes) {
        return problem_of([&](hid_t file, const TemporaryFolder&) {
            const hdf5::Hid creation = creation_list();
            const Sizes chunk(sizes.size(), 1);
            H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
            put_bytes(file, "images", sizes, creation.get());
        });
    };

    CHECK(claims({1U << 20, 1U << 20}).find("images claims the shape (1048576, 1048576)") == 0);
    CHECK(claims({16, 17, 67818912035696881}).find("images claims the impossible shape (16, 17, 67818912035696881)") ==
          0);
    CHECK(claims({hsize_t{1} << 62, 2, 2}).find("images claims the impossible shape") == 0);
}

TEST_CASE("a table with more rows than its file can store is refused") {
    const TemporaryFolder folder;
    hdf5::write_file(folder / "a.h5", [](hid_t file) {
        const hdf5::Hid row(H5Tcreate(H5T_COMPOUND, 8));
        H5Tinsert(row.get(), "id", 0, H5T_NATIVE_UINT64);
        const hdf5::Hid dataset(H5Dcreate2(file, "individuals", row.get(), space_of({hsize_t{1} << 40}).get(),
                                           H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    });
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");

    CHECK_THROWS_WITH_AS(hdf5::TableReader(file.get(), "individuals"), Contains("individuals claims the shape"),
                         FileError);
}

TEST_CASE("read_arrays refuses many hard links to one array if they need much more memory than the file size") {
    const TemporaryFolder folder;
    hdf5::write_file(folder / "a.h5", [](hid_t file) {
        hdf5::write_array(file, {"array", {100000}, std::vector<double>(100000)});
        for (int i = 0; i < 100; ++i) {
            const std::string name = "again" + std::to_string(i);
            H5Lcreate_hard(file, "array", file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
        }
    });
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");

    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_arrays(file.get())), Contains("than a file of this size"),
                         FileError);
}

TEST_CASE("a table whose rows share one long text is refused if it needs much more memory than the file size") {
    const TemporaryFolder folder;
    constexpr std::size_t rows = 200000;
    const std::vector<std::string> texts{std::string(90, 'a'), ""};
    haddr_t begin = 0;
    std::size_t row_bytes = 0;
    {
        const hdf5::Hid made = new_file(folder / "a.h5");
        hdf5::TableWriter table(rows);
        table.long_text("text", [&](std::size_t row) -> const std::string& { return texts[row == 0 ? 0 : 1]; });
        table.write(made.get(), "table");
        const hdf5::Hid dataset(H5Dopen2(made.get(), "table", H5P_DEFAULT));
        begin = H5Dget_offset(dataset.get());
        row_bytes = static_cast<std::size_t>(H5Dget_storage_size(dataset.get())) / rows;
    }
    std::string bytes = testing::contents(folder / "a.h5");
    for (std::size_t row = 1; row < rows; ++row) {
        bytes.replace(begin + row * row_bytes, row_bytes, bytes, begin, row_bytes);
    }
    testing::put_contents(folder / "a.h5", bytes);
    const hdf5::Hid file = hdf5::open_plain_file(folder / "a.h5");

    CHECK_THROWS_WITH_AS(hdf5::TableReader(file.get(), "table"), Contains("table cannot be read"), FileError);
    std::size_t visited = 0;
    CHECK_THROWS_WITH_AS(hdf5::TableReader::read_in_blocks(file.get(), "table",
                                                           [&](const hdf5::TableReader& block, std::size_t) {
                                                               visited += block.rows();
                                                               CHECK(block.text("text").front() == texts.front());
                                                           }),
                         Contains("table cannot be read"), FileError);
    CHECK(visited > 0);
    CHECK(visited < rows);
}

TEST_CASE("very deeply nested groups are refused before the stack overflows") {
    const TemporaryFolder folder;
    hdf5::write_file(folder / "a.h5", [](hid_t file) {
        hdf5::Hid group(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        for (int depth = 0; depth < 20000; ++depth) {
            group = hdf5::Hid(H5Gcreate2(group.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        }
    });
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");

    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_arrays(file.get())), Contains("nested"), FileError);
}
