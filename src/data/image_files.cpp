#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/images/image.hpp"

#include "readers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_image_file = std::uintmax_t{1} << 30;  // bytes
constexpr double seconds_between_lines = 10;

images::Options image_options(const Options& options) {
    images::Options made{.size = {}, .grey = options.grey, .background = {}};
    if (!options.size.empty()) {
        made.size = images::Size{options.size.front(), options.size.back()};
    }
    if (!options.background.empty()) {
        made.background.emplace();
        std::transform(options.background.begin(), options.background.end(), made.background->begin(),
                       [](std::int64_t value) { return static_cast<std::uint8_t>(value); });
    }
    return made;
}

images::Image read_image(const fs::path& file, const images::Options& options) {
    const std::optional<std::string> bytes = read_text(file, largest_image_file);
    if (!bytes) {
        refuse(file, fmt::format("cannot be read; expected a readable file of at most {} bytes", largest_image_file));
    }
    try {
        return images::read(std::as_bytes(std::span(*bytes)), options);
    } catch (const images::ImageError& error) {
        refuse(file, error.what());
    }
}

/// Reads image files on several threads. Each image has its own place in the data set, so threads share only counters.
/// Throws the error of the first bad file, whatever the number of threads.
class ImageFiles {
public:
    ImageFiles(const fs::path& folder, const std::vector<fs::path>& files, const Options& options, Dataset& set)
        : folder_(folder), files_(files), options_(image_options(options)), set_(set), turned_(files.size()) {}

    std::vector<std::size_t> read() {
        const images::Image first = read_image(files_.front(), options_);
        set_.height = first.height;
        set_.width = first.width;
        set_.channels = first.channels;
        need_memory(folder_, std::ssize(files_) * set_.pixels_per_image());
        set_.pixels.own().resize(files_.size() * first.pixels.size());
        put(0, first);
        {
            std::vector<std::jthread> helpers;
            const auto cpus = static_cast<std::size_t>(std::max(1, cluster::usable_cpus()));
            while (helpers.size() + 1 < std::min(cpus, files_.size()) && add_thread(helpers)) {
            }
            work(true);
        }
        if (error_) {
            std::rethrow_exception(error_);
        }
        std::vector<std::size_t> indices;
        for (std::size_t i = 0; i < turned_.size(); ++i) {
            if (turned_[i] != 0) {
                indices.push_back(i);
            }
        }
        return indices;
    }

private:
    /// Returns false if the system refuses another thread.
    bool add_thread(std::vector<std::jthread>& helpers) {
        try {
            helpers.emplace_back(std::jthread([this] { work(false); }));
            return true;
        } catch (const std::system_error&) {
            return false;
        }
    }

    void put(std::size_t index, const images::Image& image) {
        if (image.height != set_.height || image.width != set_.width) {
            refuse(files_[index],
                   fmt::format("is {} x {}, {} is {} x {}; write data.size: [height, width]", image.height, image.width,
                               files_.front().string(), set_.height, set_.width));
        }
        std::copy(image.pixels.begin(), image.pixels.end(),
                  set_.pixels.own().begin() + static_cast<std::ptrdiff_t>(index * image.pixels.size()));
        turned_[index] = image.is_turned ? 1 : 0;
    }

    /// Reads files until all are taken or one is bad. Files are taken in order, so no bad file comes before the first
    /// one that a thread meets.
    void work(bool logs) noexcept {
        double last = steady_seconds();
        for (std::size_t index = next_++; index < files_.size() && !stops_; index = next_++) {
            try {
                put(index, read_image(files_[index], options_));
            } catch (...) {  // the caller rethrows it on its own thread
                const std::lock_guard lock(mutex_);
                stops_ = true;
                if (!error_ || index < bad_index_) {
                    bad_index_ = index;
                    error_ = std::current_exception();
                }
            }
            if (logs && steady_seconds() > last + seconds_between_lines) {
                last = steady_seconds();
                spdlog::info("{}: {} of {} images are read", folder_.string(), index + 1, files_.size());
            }
        }
    }

    const fs::path& folder_;
    const std::vector<fs::path>& files_;
    images::Options options_;
    Dataset& set_;
    std::vector<std::uint8_t> turned_;  ///< by file
    std::atomic<std::size_t> next_ = 1;
    std::atomic<bool> stops_ = false;
    std::mutex mutex_;  ///< guards the members below
    std::size_t bad_index_ = 0;
    std::exception_ptr error_;
};

}  // namespace

std::vector<std::size_t> read_image_files(const fs::path& folder, const std::vector<fs::path>& files,
                                          const Options& options, Dataset& set) {
    return ImageFiles(folder, files, options, set).read();
}

}  // namespace finch::data
