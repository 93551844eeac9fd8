// Compares the memory that a CPU training uses with its plan.
#include "world.hpp"

#include <fstream>
#include <malloc.h>

using namespace finch;
using namespace finch::test;

namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t libraries = 16 * mebibyte;  ///< reserved by memory_left() for libraries

std::int64_t status(const std::string& key) {
    std::ifstream in("/proc/self/status");
    for (std::string word; in >> word;) {
        if (word == key) {
            std::int64_t kilobytes = 0;
            in >> kilobytes;
            return kilobytes * 1024;
        }
    }
    return 0;
}

/// Measures the resident memory that was added since construction.
class Peak {
public:
    Peak() {
        ::malloc_trim(0);
        std::ofstream("/proc/self/clear_refs") << "5";  // resets VmHWM
        before_ = status("VmRSS:");
        can_be_measured_ = status("VmHWM:") - before_ < mebibyte;
    }
    [[nodiscard]] bool can_be_measured() const { return can_be_measured_; }
    [[nodiscard]] std::int64_t highest() const { return status("VmHWM:") - before_; }
    [[nodiscard]] std::int64_t now() const {
        ::malloc_trim(0);  // returns freed memory to the system
        return status("VmRSS:") - before_;
    }

private:
    std::int64_t before_ = 0;
    bool can_be_measured_ = false;
};

/// Returns a recipe with two wide layers and about 16 MiB of weights. Backward computes the second layer's input
/// gradient.
train::Recipe wide_recipe() {
    train::Recipe recipe = small_recipe(20);
    recipe.training.optimizer = backend::Adadelta{};
    recipe.model = {nn::FlattenLayer{}, nn::LinearLayer{.units = 2000, .activation = backend::Activation::relu},
                    nn::LinearLayer{.units = 2000, .activation = backend::Activation::relu}, nn::LinearLayer{}};
    return recipe;
}

}  // namespace

TEST_CASE("a training uses at most its plan's bytes and not much less; a snapshot adds at most snapshot_bytes") {
#if defined(__SANITIZE_ADDRESS__)
    return;  // AddressSanitizer keeps freed memory
#endif
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    Run(group, datasets, small_recipe(20)).finish();  // so that libraries allocate their own memory now
    if (!Peak().can_be_measured()) {
        MESSAGE("the kernel does not let VmHWM begin anew: not measured");
        return;
    }

    for (const bool averages : {false, true}) {
        CAPTURE(averages);
        train::Recipe recipe = wide_recipe();
        recipe.training.average = averages ? std::optional(0.9) : std::nullopt;
        const Peak peak;
        Run run(group, datasets, recipe);
        static_cast<void>(run->advance(1000));
        const std::int64_t bytes = run->plan().bytes;
        const std::int64_t with_snapshot = bytes + run->plan().snapshot_bytes;
        CHECK(peak.now() < bytes + libraries);
        CHECK(peak.now() > bytes * 3 / 4);
        CHECK(peak.highest() < with_snapshot);
        run->restore(run->snapshot());
        CHECK(peak.highest() < with_snapshot);
    }
}
