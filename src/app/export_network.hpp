#pragma once

#include "finch/app/verbs.hpp"

namespace finch::app {

/// Exports models/best.h5 of a run as a folder for PyTorch; with ExportFormat::onnx also as model.onnx. Throws
/// ConfigError if the run has no network or the folder cannot be created.
[[nodiscard]] int export_network(const ExportOptions& options, ExportFormat format);

}  // namespace finch::app
