#pragma once

#include "finch/base/log.hpp"

#include <memory>
#include <spdlog/sinks/ostream_sink.h>
#include <sstream>
#include <string>

namespace finch::testing {

/// Captures all log messages of level `info` and above during its lifetime.
class CapturedLog {
public:
    CapturedLog() {
        spdlog::set_default_logger(
            std::make_shared<spdlog::logger>("captured", std::make_shared<spdlog::sinks::ostream_sink_st>(text_)));
    }
    ~CapturedLog() { spdlog::set_default_logger(before_); }
    CapturedLog(const CapturedLog&) = delete;
    CapturedLog& operator=(const CapturedLog&) = delete;

    [[nodiscard]] std::string text() const { return text_.str(); }

private:
    std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
    std::ostringstream text_;
};

}  // namespace finch::testing
