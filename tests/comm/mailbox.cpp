#include "finch/base/clock.hpp"
#include "finch/base/random.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/comm/mpi_mailbox.hpp"

#include "comm/world_rank.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <functional>
#include <thread>

using namespace finch;
using namespace finch::comm;
using finch::test::world_rank;

namespace {

// 10 migrants of 30 genes: each has 30 doubles and about 80 bytes of lineage and outcome.
constexpr std::size_t ten_migrants = 10 * (30 * 8 + 80);

/// Returns a message of `size` bytes that contains its sender and its number. The remaining bytes depend on both.
comm::Message numbered(int from, std::uint32_t number, std::size_t size) {
    Bytes bytes;
    ByteWriter out(bytes);
    out.put(static_cast<std::uint32_t>(from));
    out.put(number);
    for (std::size_t at = bytes.size(); at < size; ++at) {
        bytes.push_back(static_cast<std::byte>(at + number * 7 + static_cast<std::uint32_t>(from)));
    }
    return std::make_shared<const Bytes>(std::move(bytes));
}

/// The messages that a leader received: each sender's numbers in order of arrival, and whether all bytes were correct.
struct Received {
    std::vector<std::vector<std::uint32_t>> numbers;
    bool intact = true;

    explicit Received(int leaders) : numbers(static_cast<std::size_t>(leaders)) {}
    std::size_t add(const std::vector<Envelope>& envelopes) {
        for (const Envelope& envelope : envelopes) {
            ByteReader in(envelope.bytes);
            const auto from = in.get<std::uint32_t>();
            const auto number = in.get<std::uint32_t>();
            intact = intact && static_cast<int>(from) == envelope.from &&
                     envelope.bytes == *numbered(envelope.from, number, envelope.bytes.size());
            numbers[from].push_back(number);
        }
        return envelopes.size();
    }
};

std::vector<std::uint32_t> first_numbers(std::uint32_t count) {
    std::vector<std::uint32_t> numbers(count);
    for (std::uint32_t number = 0; number < count; ++number) {
        numbers[number] = number;
    }
    return numbers;
}

/// Calls `is_done` until it returns true, and sleeps between the calls. The test's watchdog limits the time.
void until(const std::function<bool()>& is_done) {
    while (!is_done()) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void close(Mailbox& mailbox, Received& received) {
    mailbox.begin_closing();
    until([&] {
        received.add(mailbox.take());
        return mailbox.closed();
    });
}

}  // namespace

TEST_CASE("mailbox: 300 rounds of 10 migrants of 30 genes, from all to all, do not deadlock") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    Received received(mailbox->leaders());
    constexpr std::uint32_t rounds = 300;
    // All messages are sent before any message is received. Blocking sends or a full buffer would hang here.
    for (std::uint32_t round = 0; round < rounds; ++round) {
        for (int to = 0; to < mailbox->leaders(); ++to) {
            mailbox->send(to, numbered(mailbox->self(), round, ten_migrants), true);
        }
    }

    close(*mailbox, received);

    CHECK(received.intact);
    for (const auto& numbers : received.numbers) {
        CHECK(numbers == first_numbers(rounds));
    }
}

TEST_CASE("mailbox: messages of one sender arrive in order, for any mixture of sizes, counted or not") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    Received received(mailbox->leaders());
    RandomStream random(11, Purpose::test, static_cast<std::uint64_t>(mailbox->self()));
    constexpr std::uint32_t count = 200;
    for (std::uint32_t number = 0; number < count; ++number) {
        // MPI uses different protocols for long and short messages. A short message could therefore overtake a long
        // one.
        const std::size_t size = random.below(3) == 0 ? 8 + random.below(400'000) : 8 + random.below(200);
        for (int to = 0; to < mailbox->leaders(); ++to) {
            mailbox->send(to, numbered(mailbox->self(), number, size), random.below(2) == 0);
        }
        if (random.below(8) == 0) {
            received.add(mailbox->take());
        }
    }
    const auto have_all = [&] {
        received.add(mailbox->take());
        std::size_t total = 0;
        for (const auto& numbers : received.numbers) {
            total += numbers.size();
        }
        return total == count * received.numbers.size();
    };
    until(have_all);

    close(*mailbox, received);

    CHECK(received.intact);
    for (const auto& numbers : received.numbers) {
        CHECK(numbers == first_numbers(count));
    }
}

TEST_CASE("mailbox: the first take() returns a message that has already arrived") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    Received received(mailbox->leaders());
    // Ranks 0 and 1 signal their progress through shared memory, because each MPI call would progress the messages.
    int* told = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    FINCH_MPI(MPI_Win_allocate_shared(world_rank() == 0 ? 2 * sizeof(int) : 0, sizeof(int), MPI_INFO_NULL,
                                      MPI_COMM_WORLD, &told, &window));
    MPI_Aint size = 0;
    int unit = 0;
    FINCH_MPI(MPI_Win_shared_query(window, 0, &size, &unit, &told));
    std::atomic_ref<int> sent(told[0]);
    std::atomic_ref<int> seen(told[1]);
    constexpr std::uint32_t rounds = 40;
    std::size_t at_first = 0;
    for (std::uint32_t round = 0; round < rounds; ++round) {
        const int next = static_cast<int>(round) + 1;
        if (world_rank() == 0) {
            mailbox->send(1, numbered(0, round, 400), true);
            sent = next;
            until([&] { return seen == next; });
        } else if (world_rank() == 1) {
            until([&] { return sent == next; });
            at_first += received.add(mailbox->take());
            until([&] {
                received.add(mailbox->take());
                return received.numbers[0].size() == round + 1;
            });
            seen = next;
        }
    }

    close(*mailbox, received);

    if (world_rank() == 1) {
        CHECK(received.numbers[0] == first_numbers(rounds));
        CHECK(at_first > rounds / 2);  // the first messages also establish the connection
    }
    FINCH_MPI(MPI_Win_free(&window));
}

TEST_CASE("mailbox: the next take() returns messages to the sender itself, in order") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    Received received(mailbox->leaders());
    for (std::uint32_t number = 0; number < 3; ++number) {
        mailbox->send(mailbox->self(), numbered(mailbox->self(), number, 8), number != 1);
    }

    const auto envelopes = mailbox->take();
    const bool nothing_left = mailbox->take().empty();
    received.add(envelopes);
    close(*mailbox, received);

    CHECK(envelopes.size() == 3);
    CHECK(nothing_left);
    CHECK(received.numbers[static_cast<std::size_t>(mailbox->self())] == first_numbers(3));
}

TEST_CASE("mailbox: a message to the sender itself keeps the mailbox open until it is taken") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    Received received(mailbox->leaders());
    if (mailbox->self() == 0) {
        mailbox->send(0, numbered(0, 0, 8), true);
    }
    mailbox->begin_closing();
    bool closed_too_early = false;
    const double until_then = steady_seconds() + 0.1;
    until([&] {
        closed_too_early = closed_too_early || (mailbox->self() == 0 && mailbox->closed());
        return steady_seconds() > until_then;
    });

    until([&] {
        received.add(mailbox->take());
        return mailbox->closed();
    });

    CHECK_FALSE(closed_too_early);
    CHECK(received.numbers[0].size() == (mailbox->self() == 0 ? 1 : 0));
}

TEST_CASE("closing: no message is lost, for any delays") {
    for (std::uint32_t repetition = 0; repetition < 5; ++repetition) {
        const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
        Received received(mailbox->leaders());
        RandomStream random(13, Purpose::test, static_cast<std::uint64_t>(mailbox->self()), repetition);
        std::vector<std::int64_t> sent(static_cast<std::size_t>(mailbox->leaders()));
        const std::uint64_t count = random.below(60);
        for (std::uint64_t message = 0; message < count; ++message) {
            const int to = static_cast<int>(random.below(sent.size()));
            auto& number = sent[static_cast<std::size_t>(to)];
            const std::size_t size = random.below(5) == 0 ? 100'000 : ten_migrants;
            mailbox->send(to, numbered(mailbox->self(), static_cast<std::uint32_t>(number++), size), true);
            if (random.below(3) == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
                received.add(mailbox->take());
            }
        }

        close(*mailbox, received);

        std::vector<std::int64_t> expected(sent.size());
        FINCH_MPI(MPI_Alltoall(sent.data(), 1, MPI_INT64_T, expected.data(), 1, MPI_INT64_T, MPI_COMM_WORLD));
        CHECK(received.intact);
        for (std::size_t from = 0; from < expected.size(); ++from) {
            CHECK(received.numbers[from] == first_numbers(static_cast<std::uint32_t>(expected[from])));
        }
    }
}

TEST_CASE("closing: no leader closes before the last leader has sent its messages") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    Received received(mailbox->leaders());
    bool closed_too_early = false;
    if (mailbox->self() != 3) {
        mailbox->begin_closing();
    } else {
        // The other leaders began to close earlier. Each other leader still receives a message from this leader.
        const double later = steady_seconds() + 0.3;
        until([&] { return steady_seconds() > later; });
        for (int to = 0; to < 3; ++to) {
            mailbox->send(to, numbered(3, 0, 200'000), true);
        }
        mailbox->begin_closing();
    }

    until([&] {
        // closed() is called before take(): it must return false until take() has returned the message.
        closed_too_early =
            closed_too_early || (mailbox->self() != 3 && received.numbers[3].empty() && mailbox->closed());
        received.add(mailbox->take());
        return mailbox->closed();
    });

    CHECK_FALSE(closed_too_early);
    CHECK(received.intact);
    CHECK(received.numbers[3].size() == (mailbox->self() == 3 ? 0 : 1));
}

TEST_CASE("closing: uncounted messages still arrive, also to and from a leader that is closing") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    // Leases use this pattern: leader 0 answers all requests and begins to close last.
    if (mailbox->self() != 0) {
        mailbox->begin_closing();
        mailbox->send(0, numbered(mailbox->self(), 0, 16), false);
    }
    int heard = 0;
    const int expected = mailbox->self() == 0 ? 3 : 1;
    bool begun = mailbox->self() != 0;
    until([&] {
        for (const Envelope& envelope : mailbox->take()) {
            ++heard;
            if (mailbox->self() == 0) {
                mailbox->send(envelope.from, numbered(0, 0, 16), false);
            }
        }
        if (!begun && heard == expected) {
            mailbox->begin_closing();
            begun = true;
        }
        return begun && heard == expected && mailbox->closed();
    });

    CHECK(heard == expected);
}

TEST_CASE("closing: after begin_closing(), a counted message or a second begin_closing() throws Error") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    Received received(mailbox->leaders());
    CHECK_FALSE(mailbox->closed());

    mailbox->begin_closing();
    CHECK_THROWS_AS(mailbox->send(0, numbered(0, 0, 8), true), Error);
    CHECK_THROWS_AS(mailbox->begin_closing(), Error);

    until([&] {
        received.add(mailbox->take());
        return mailbox->closed();
    });
    CHECK(mailbox->closed());
}

TEST_CASE("send: a leader that does not exist throws Error") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);

    CHECK_THROWS_AS(mailbox->send(4, numbered(0, 0, 8), true), Error);
    CHECK_THROWS_AS(mailbox->send(-1, numbered(0, 0, 8), true), Error);
}

TEST_CASE("send: a buffer that several sends share is freed after all of them have arrived, and not before") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    Received received(mailbox->leaders());
    std::weak_ptr<const Bytes> watched;
    if (mailbox->self() == 0) {
        const auto shared = numbered(0, 0, 1'000'000);  // too long for MPI to buffer
        watched = shared;
        for (int to = 1; to < 4; ++to) {
            mailbox->send(to, shared, true);
        }
    }
    const bool alive_after_sending = !watched.expired();
    const bool some_take_was_empty = mailbox->self() != 0 || mailbox->take().empty();
    FINCH_MPI(MPI_Barrier(MPI_COMM_WORLD));

    close(*mailbox, received);
    (void)mailbox->take();

    CHECK(alive_after_sending == (mailbox->self() == 0));
    CHECK(some_take_was_empty);
    CHECK(received.numbers[0].size() == (mailbox->self() == 0 ? 0 : 1));
    CHECK(watched.expired());
}

TEST_CASE("urgent stop: a mailbox with messages in flight can be destroyed") {
    {
        const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
        for (int to = 0; to < mailbox->leaders(); ++to) {
            mailbox->send(to, numbered(mailbox->self(), 0, 500'000), true);
        }
    }
    FINCH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(size_of(MPI_COMM_WORLD) == 4);
}

TEST_CASE("make_leaders: contains the leaders in the order of their workers, and is empty on other ranks") {
    // Ranks 3 and 1 are the leaders of workers 0 and 1.
    const bool leads = world_rank() % 2 == 1;

    const Communicator leaders = make_leaders(MPI_COMM_WORLD, leads, world_rank() == 3 ? 0 : 1);

    CHECK(static_cast<bool>(leaders) == leads);
    if (leads) {
        CHECK(size_of(leaders.get()) == 2);
        CHECK(rank_of(leaders.get()) == (world_rank() == 3 ? 0 : 1));
        const auto mailbox = make_mpi_mailbox(leaders.get());
        CHECK(mailbox->self() == (world_rank() == 3 ? 0 : 1));
        Received received(mailbox->leaders());
        mailbox->send(1 - mailbox->self(), numbered(mailbox->self(), 0, 8), true);
        close(*mailbox, received);
        CHECK(received.numbers[static_cast<std::size_t>(1 - mailbox->self())].size() == 1);
    }
}

TEST_CASE("mailbox: a single leader can close alone") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_SELF);
    Received received(1);
    mailbox->send(0, numbered(0, 0, 8), true);

    close(*mailbox, received);

    CHECK(received.numbers[0].size() == 1);
}
