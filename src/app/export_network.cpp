#include "export_network.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/data/recorded_pixels.hpp"
#include "finch/nn/model.hpp"
#include "finch/pytorch/network.hpp"

#include "best_network.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace finch::app {
namespace {

/// Writes model.onnx in the current folder. Newer PyTorch exports with TorchDynamo by default, which needs the package
/// onnxscript.
constexpr const char* onnx_script = R"(
import inspect, os, sys, warnings
warnings.simplefilter("ignore")
sys.dont_write_bytecode = True
sys.path.insert(0, "")
try:
    import torch, model
    network = torch.nn.Sequential(model.load("."), *([torch.nn.Softmax(1)] if hasattr(model, "CLASSES") else [])).eval()
    images = torch.zeros((2, *model.SHAPE), dtype=getattr(torch, sys.argv[1]))
    output = "probabilities" if hasattr(model, "CLASSES") else "values"
    older = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(network, (images,), "model.onnx.new", input_names=["images"], output_names=[output],
                      dynamic_axes={"images": {0: "N"}, output: {0: "N"}}, **older)
    os.replace("model.onnx.new", "model.onnx")
except Exception as error:
    sys.exit(" ".join(f"{type(error).__name__}: {error}".split()))
finally:
    if os.path.exists("model.onnx.new"):
        os.remove("model.onnx.new")
)";

void refuse_untrained(const config::Config& config, const std::string& run) {
    if (config.trains()) {
        return;
    }
    const bool is_program = std::holds_alternative<config::CommandObjective>(config.objective);
    throw ConfigError(
        is_program
            ? fmt::format(
                  "{}: Finch trained no network in this run: its objective is a program; accepted: --format csv "
                  "or json, and the program's own files in {}/evaluations (search.objective.keep)",
                  run, run)
            : fmt::format("{}: this run has no network: its objective is a function; accepted: --format csv or json",
                          run));
}

data::RecordedImages images_of(const store::ModelFile& best, const std::filesystem::path& path) {
    try {
        return data::recorded_images(best.arrays);
    } catch (const FileError& error) {
        throw ConfigError(fmt::format(
            "{} does not say which images its network takes ({}); accepted: a network that this version trained",
            path.string(), error.what()));
    }
}

pytorch::Network network_of(const std::filesystem::path& run) {
    const store::RunDirectory directory(run);
    const store::Recovered recovered = store::recover_run(directory, store::Curves::leave);
    const config::Config config = config::parse(recovered.facts.config, directory.config().string());
    refuse_untrained(config, run.string());
    store::ModelFile best = read_best_network(directory, recovered);
    const train::Recipe recipe = config.recipe(best.individual.genome, best.individual.id.value);
    data::RecordedImages images = images_of(best, directory.best_model());
    pytorch::Network network{.title = printable_line(fmt::format("The best network of {}: individual {}.", run.string(),
                                                                 to_text(best.individual.id))),
                             .layers = recipe.model,
                             .input = {images.height, images.width, images.channels},
                             .outputs = images.outputs,
                             .classifies = recipe.training.loss == train::Loss::cross_entropy,
                             .float_pixels = images.float_pixels,
                             .mean = std::move(images.normalisation.mean),
                             .deviation = std::move(images.normalisation.deviation),
                             .classes = std::move(best.classes)};
    const nn::ModelPlan plan = nn::plan_model(network.layers, network.input, network.outputs, 1);
    network.weights = nn::name_tensors(plan, nn::read_tensors(plan, best.arrays));
    return network;
}

/// Runs a shell command. Returns its exit status and the last line of its output.
std::pair<int, std::string> run_in_shell(const std::string& command) {
    const auto close = [](std::FILE* pipe) { return pipe == nullptr ? -1 : ::pclose(pipe); };
    std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    std::string output;
    std::array<char, 4096> part{};
    while (pipe != nullptr && std::fgets(part.data(), part.size(), pipe) != nullptr) {
        output += part.data();
    }
    const int status = close(pipe);
    std::istringstream lines(output);
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        last = line.empty() ? last : line;
    }
    return {status, printable_line(last)};
}

void write_onnx(const std::filesystem::path& folder, bool float_pixels) {
    const char* const chosen = std::getenv("FINCH_PYTHON");
    std::string python = chosen == nullptr || *chosen == '\0' ? "python3" : chosen;
    if (python.find('/') != std::string::npos) {
        python = std::filesystem::absolute(python).string();  // the command runs in another folder
    }
    const auto [status, said] = run_in_shell(
        fmt::format("cd {} && {} -c {} {}", quoted_for_shell(std::filesystem::absolute(folder).string()),
                    quoted_for_shell(python), quoted_for_shell(onnx_script), float_pixels ? "float32" : "uint8"));
    if (status != 0) {
        throw ConfigError(
            fmt::format("{} is complete, but without model.onnx: {} could not write it ({}); accepted: FINCH_PYTHON, a "
                        "Python with PyTorch, and a new folder",
                        folder.string(), python, said));
    }
}

}  // namespace

int export_network(const ExportOptions& options, ExportFormat format) {
    const pytorch::Network network = network_of(options.run);
    const std::filesystem::path run = (std::filesystem::absolute(options.run) / "").lexically_normal().parent_path();
    const std::filesystem::path folder = options.output.value_or(run.filename().string() + "-pytorch");
    if (folder.empty()) {
        throw ConfigError("--output: is empty; accepted: a new folder, or an empty one");
    }
    pytorch::write_folder(folder, network);
    if (format == ExportFormat::onnx) {
        write_onnx(folder, network.float_pixels);
    }
    fmt::print("{} Written to {}: model.py, example.py, model.safetensors, model.pt{}\n", network.title,
               folder.string(), format == ExportFormat::onnx ? ", model.onnx" : "");
    fmt::print("use it: python3 {} FILE…\n", shell_argument((folder / "example.py").string()));
    return exit_done;
}

}  // namespace finch::app
