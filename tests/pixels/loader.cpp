#include "finch/pixels/loader.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"

#include "files.hpp"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <iterator>
#include <optional>

namespace finch::pixels {
namespace {

using test::Bytes;
using testing::TemporaryFolder;
namespace fs = std::filesystem;
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t values = 300 * 1024;  // several chunks per batch
constexpr std::int64_t batch = 3;

/// A loader with its files and its ring buffer.
struct World {
    explicit World(std::int64_t threads, std::int64_t batches = 2, std::int64_t of_image = values)
        : store(std::make_shared<Store>(ImageSize{.values = of_image},
                                        std::vector{test::write_images(folder.path() / "a", 16, 12, of_image)})),
          prefetch{threads, batches},
          ring(Loader::ring_bytes(store->bytes_per_image(), batch, prefetch)) {
        loader.emplace(store, batch, prefetch, ring);
    }

    /// Returns whether next() returns the images of `indices`.
    [[nodiscard]] bool brings(const Indices& indices) {
        const auto bytes = loader->next();
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const Bytes image = test::image_of(std::max<std::int64_t>(0, indices[i]), store->size().values);
            if (indices[i] >= 0 && !std::equal(image.begin(), image.end(),
                                               bytes.begin() + std::ssize(image) * static_cast<std::ptrdiff_t>(i))) {
                return false;
            }
        }
        return true;
    }

    TemporaryFolder folder;
    std::shared_ptr<Store> store;
    Prefetch prefetch;
    Bytes ring;
    std::optional<Loader> loader;
};

std::ptrdiff_t threads_of_this_process() {
    return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

/// Returns the mask of blocked signals of a thread, from /proc.
std::uint64_t blocked_signals(const fs::path& task) {
    std::ifstream status(task / "status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("SigBlk:")) {
            return std::stoull(line.substr(7), nullptr, 16);
        }
    }
    return 0;
}

TEST_CASE("next: returns batches in the order of want(), for any number of threads") {
    for (const std::int64_t threads : {1, 2, 8}) {
        CAPTURE(threads);
        World world(threads);
        world.loader->want(Indices{4, 0, 11, 5, 6, 7, 1, 1, 1, 10, 9, 8});

        CHECK(world.brings({4, 0, 11}));
        CHECK(world.brings({5, 6, 7}));
        CHECK(world.brings({1, 1, 1}));
        CHECK(world.brings({10, 9, 8}));
        CHECK_THROWS_AS((void)world.loader->next(), Error);
    }
}

TEST_CASE("announce: announced batches are read ahead; a different batch in want() is read instead") {
    World world(2, 3);
    world.loader->want(Indices{0, 1, 2});
    world.loader->announce(Indices{3, 4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(world.brings({0, 1, 2}));

    world.loader->want(Indices{3, 4, 5});
    world.loader->announce(Indices{6, 7, 8, 9, 10, 11});
    CHECK(world.brings({3, 4, 5}));

    world.loader->want(Indices{6, 7, 8, 2, 1, 0});  // the second batch differs from the announced one
    world.loader->announce(Indices{4, 4, 4});
    CHECK(world.brings({6, 7, 8}));
    CHECK(world.brings({2, 1, 0}));
    world.loader->want(Indices{5, 5, 5});
    CHECK(world.brings({5, 5, 5}));
}

TEST_CASE("want: discards the remaining batches of the previous want()") {
    World world(2);
    world.loader->want(Indices{0, 1, 2, 3, 4, 5, 6, 7, 8});
    CHECK(world.brings({0, 1, 2}));

    world.loader->want(Indices{9, 10, 11});

    CHECK(world.brings({9, 10, 11}));
    CHECK_THROWS_AS((void)world.loader->next(), Error);
}

TEST_CASE("padding (index -1) is not read, and a batch may consist of padding only") {
    World world(1);
    fs::resize_file(world.folder.path() / "a", 0);  // so every read fails
    world.loader->want(Indices{-1, -1, -1});

    CHECK_NOTHROW((void)world.loader->next());
}

TEST_CASE("an unreadable image makes next() throw for its batch only; the loader stays usable") {
    for (const std::int64_t threads : {1, 8}) {
        World world(threads);
        fs::resize_file(world.folder.path() / "a", 16 + 5 * values);
        world.loader->want(Indices{-1, -1, -1, 1, 8, 2});

        CHECK(world.brings({-1, -1, -1}));
        CHECK_THROWS_WITH_AS((void)world.loader->next(), doctest::Contains("/a: "), StorageError);
        world.loader->want(Indices{-1, -1, -1});
        CHECK_NOTHROW((void)world.loader->next());
    }
}

TEST_CASE("thousands of loaders can be destroyed while they read, without leaking threads") {
    World world(2, 4, 1000);
    static_cast<void>(world.store->threads(2));
    const std::ptrdiff_t threads = threads_of_this_process();
    for (int i = 0; i < 3000; ++i) {
        Bytes ring(Loader::ring_bytes(1000, batch, world.prefetch));
        Loader loader(world.store, batch, world.prefetch, ring);
        loader.want(Indices{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
        if (i % 3 == 0) {
            CHECK(loader.next()[0] == test::value_at(0, 0));
        }
    }

    CHECK(threads_of_this_process() == threads);
}

TEST_CASE("many loaders share the threads of one store") {
    World world(3);
    std::vector<Bytes> rings;
    std::vector<std::unique_ptr<Loader>> loaders;
    for (std::int64_t i = 0; i < 6; ++i) {
        rings.emplace_back(world.ring.size());
        loaders.push_back(std::make_unique<Loader>(world.store, batch, world.prefetch, rings.back()));
        loaders.back()->want(Indices{i, i + 1, i + 2, i + 3, i + 4, i + 5});
    }
    for (std::int64_t round = 0; round < 2; ++round) {
        for (std::int64_t i = 5; i >= 0; --i) {
            const auto bytes = loaders[static_cast<std::size_t>(i)]->next();
            CHECK(bytes[0] == test::value_at(i + 3 * round, 0));
            CHECK(bytes[2 * values + 7] == test::value_at(i + 3 * round + 2, 7));
        }
    }
}

TEST_CASE("the reading threads block all signals, and the caller's signal mask does not change") {
    World world(4);
    sigset_t mine;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mine);

    CHECK(::sigismember(&mine, SIGUSR2) == 0);
    const auto bit = [](int signal) { return std::uint64_t{1} << static_cast<unsigned>(signal - 1); };
    std::ptrdiff_t deaf = 0;
    for (const auto& task : fs::directory_iterator("/proc/self/task")) {
        const std::uint64_t wanted = bit(SIGUSR2) | bit(SIGTERM) | bit(SIGINT) | bit(SIGALRM);
        deaf += (blocked_signals(task.path()) & wanted) == wanted ? 1 : 0;
    }
    CHECK(deaf >= 4);
}

}  // namespace
}  // namespace finch::pixels
