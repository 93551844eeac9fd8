#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/words.hpp"
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
constexpr std::size_t most_lines = 51;                                  // of a message about refused files

images::Options image_options(const Options& options) {
    images::Options made{.grey = options.grey};
    if (!options.size.empty()) {
        made.size = {options.size.front(), options.size.back()};
    }
    if (!options.background.empty()) {
        std::copy(options.background.begin(), options.background.end(), made.background.emplace().begin());
    }
    return made;
}

/// Reads image files on several threads. Each image has its own place in the data set, so threads share only counters
/// and the list of refused files.
class ImageFiles {
public:
    ImageFiles(const fs::path& folder, const std::vector<fs::path>& files, const Options& options, Dataset& set)
        : folder_(folder),
          files_(files),
          options_(image_options(options)),
          set_(set),
          remarks_(files.size()),
          problems_(files.size()) {}

    std::vector<std::string_view> read() {
        for (; set_.height == 0 && next_ < files_.size(); ++next_) {
            if (const auto image = read_or_note(next_)) {
                first_ = next_;
                set_.height = image->height;
                set_.width = image->width;
                set_.channels = image->channels;
                need_memory(folder_, std::ssize(files_) * set_.pixels_per_image());
                set_.pixels.own().resize(files_.size() * image->pixels.size());
                put(next_, *image);
            }
        }
        {
            std::vector<std::jthread> helpers;
            const auto cpus = static_cast<std::size_t>(std::max(1, cluster::usable_cpus()));
            try {
                while (helpers.size() + 1 < std::min(cpus, files_.size())) {
                    helpers.emplace_back([this] { work(false); });
                }
            } catch (const std::system_error&) {  // the threads that there are do the work
            }
            work(true);
        }
        if (error_) {
            std::rethrow_exception(error_);
        }
        std::erase(problems_, "");
        if (problems_.size() > 1) {
            problems_.insert(problems_.begin(), fmt::format("{}: {} of {} images cannot be used", folder_.string(),
                                                            problems_.size(), files_.size()));
            problems_.resize(std::min(problems_.size(), most_lines));
        }
        if (!problems_.empty()) {
            throw ConfigError(join(problems_, "\n"));
        }
        return std::move(remarks_);
    }

private:
    /// Returns the image in a file. If the file is refused, returns nothing and notes the reason.
    std::optional<images::Image> read_or_note(std::size_t index) {
        try {
            const std::optional<std::string> bytes = read_text(files_[index], largest_image_file);
            return images::read(std::as_bytes(std::span(bytes.value())), options_);
        } catch (const std::bad_optional_access&) {
            check_storage_of(files_[index]);
            problems_[index] = fmt::format("{}: cannot be read; expected a readable file of at most {} bytes",
                                           files_[index].string(), largest_image_file);
        } catch (const images::ImageError& error) {
            problems_[index] = fmt::format("{}: {}", files_[index].string(), error.what());
        }
        return std::nullopt;
    }

    void put(std::size_t index, const images::Image& image) {
        if (image.height != set_.height || image.width != set_.width) {
            refuse(files_[index],
                   fmt::format("is {} x {}, {} is {} x {}; write data.size: [height, width]", image.height, image.width,
                               files_[first_].string(), set_.height, set_.width));
        }
        std::copy(image.pixels.begin(), image.pixels.end(),
                  set_.pixels.own().begin() + static_cast<std::ptrdiff_t>(index * image.pixels.size()));
        remarks_[index] = image.remark;
    }

    /// Reads files until all are taken, or one has another size. Files are taken in order, so none with another size
    /// comes before the first one that a thread meets.
    void work(bool logs) noexcept {
        double last = steady_seconds();
        for (std::size_t index = next_++; index < files_.size() && !stops_; index = next_++) {
            try {
                if (const auto image = read_or_note(index)) {
                    put(index, *image);
                }
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
    std::vector<std::string_view> remarks_;  ///< by file
    std::vector<std::string> problems_;      ///< by file; empty: the file is not refused
    std::size_t first_ = 0;                  ///< the file that set the size of all images
    std::atomic<std::size_t> next_ = 0;
    std::atomic<bool> stops_ = false;
    std::mutex mutex_;  ///< guards the members below
    std::size_t bad_index_ = 0;
    std::exception_ptr error_;
};

}  // namespace

std::vector<std::string_view> read_image_files(const fs::path& folder, const std::vector<fs::path>& files,
                                               const Options& options, Dataset& set) {
    return ImageFiles(folder, files, options, set).read();
}

}  // namespace finch::data
