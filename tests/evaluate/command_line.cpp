#include "finch/evaluate/command_line.hpp"

#include "finch/base/error.hpp"

#include "support/temporary_folder.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

using namespace finch;
using namespace finch::evaluate;
using finch::search::Individual;

namespace {

namespace fs = std::filesystem;

search::Space space() {
    search::Space genes;
    genes.genes = {{"lr", search::RealGene{0, 1}},
                   {"layers", search::IntGene{1, 9}},
                   {"act", search::ChoiceGene{{"relu", "it's \"x\"", "7"}}},
                   {"rate", search::RealGene{0.25, 1}, {{.gene = 2, .values = {0}}}}};
    return genes;
}

Individual individual(double act) {
    Individual one;
    one.id = search::Id::make(1, 2, 3);
    one.genome = {0.1, 4, act, act == 0 ? 0.5 : 0.25};
    return one;
}

const CommandLine::Paths paths{"/run", "/run/evaluations/1.2/3", true};

}  // namespace

TEST_CASE("arguments: each word of the command becomes one argument, with genes replaced by their values") {
    config::CommandObjective objective;
    objective.command = "/bin/echo {lr} '{act} {layers}' {id} {folder} {run} {here} {{}}";
    const search::Space genes = space();
    const CommandLine line(objective, genes, 5, {}, "/here");
    CHECK(line.program() == "/bin/echo");
    CHECK(line.arguments(individual(1), paths) == std::vector<std::string>{"/bin/echo", "0.1", "it's \"x\" 4", "1.2.3",
                                                                           "/run/evaluations/1.2/3", "/run", "/here",
                                                                           "{}"});

    objective.shell = true;
    objective.command = "echo {act}";
    CHECK(CommandLine(objective, genes, 5, {}, "/here").arguments(individual(1), paths) ==
          std::vector<std::string>{"/bin/sh", "-c", "echo 'it'\\''s \"x\"'"});
}

TEST_CASE("arguments that name files in the start folder become absolute paths; possible outputs are marked") {
    const testing::TemporaryFolder here;
    for (const char* name : {"train.py", "result.txt", "tool"}) {
        testing::put_contents(here / name, "pass\n");
    }
    fs::permissions(here / "tool", fs::perms::owner_all);
    testing::put_contents(here / "input.json", "{}\n");
    config::CommandObjective objective;
    objective.command = "python3 train.py input.json other.py --data=train.py ./tool ./result.txt {folder}/result.txt";
    objective.files = {{"input.json", "input.json"}};
    const search::Space genes = space();
    const CommandLine line(objective, genes, 5, {{"input.json", "[{lr}, {\"a\": 1}]"}}, here.path());
    CHECK(line.arguments(individual(0), paths) ==
          std::vector<std::string>{"python3", here / "train.py", "input.json", "other.py", "--data=train.py",
                                   here / "tool", here / "result.txt", (paths.folder / "result.txt").string()});
    CHECK(line.files(individual(0), paths).at("input.json") == "[0.1, {\"a\": 1}]");

    std::vector<std::string> may_be_written;
    for (const CommandLine::SharedFile& shared : line.shared_files()) {
        CHECK(shared.file == (here / shared.argument).lexically_normal());
        if (shared.may_be_written) {
            may_be_written.push_back(shared.argument);
        }
    }
    CHECK(line.shared_files().size() == 3);
    CHECK(may_be_written == std::vector<std::string>{"./result.txt"});
}

TEST_CASE("foreign_placeholders: genes as other languages write them, unless {lr} is used, too") {
    const search::Space genes = space();
    const auto warnings = [&](const std::string& command, const std::string& text) {
        config::CommandObjective objective;
        objective.command = command;
        objective.files = {{"a", "a.tmpl"}};
        return CommandLine(objective, genes, 5, {{"a", text}}, "/here").foreign_placeholders();
    };

    CHECK(warnings("run ${lr}", "")
              .front()
              .starts_with("search.objective.command: Finch does not replace '${lr}' by the "));
    for (const char* text : {"{{lr}}", "{{ lr }}", "{{ lr|x }}", "{lr:.2e}", "%(lr)s", "@lr@"}) {
        CHECK_MESSAGE(warnings("run {lr}", text).size() == 1, text);
        CHECK_MESSAGE(warnings("run", text + std::string("{lr}")).empty(), text);
    }
    CHECK(warnings("run", "$lrs $lr").front().starts_with("a.tmpl: Finch does not replace '$lr'"));
    CHECK(warnings("run {lr}", "<lr> $lr lr {layers}").empty());
}

TEST_CASE("environment variables and the JSON line contain the values of the active genes") {
    config::CommandObjective objective;
    objective.command = "true";
    const search::Space genes = space();
    const CommandLine line(objective, genes, 5, {}, "/here");
    const auto variables = line.variables(individual(0), paths);
    CHECK(variables.at("FINCH_GENE_lr") == "0.1");
    CHECK(variables.at("FINCH_GENE_layers") == "4");
    CHECK(variables.at("FINCH_GENE_act") == "relu");
    CHECK(variables.at("FINCH_GENE_rate") == "0.5");
    CHECK(variables.at("FINCH_RESUME") == "1");
    CHECK_FALSE(line.variables(individual(2), paths).contains("FINCH_GENE_rate"));
    CHECK_FALSE(line.variables(individual(2), {"/run", "/f", false}).contains("FINCH_RESUME"));
    CHECK_FALSE(variables.contains("FINCH_PARENT_EPOCH"));
    Individual heir = individual(0);
    heir.inherited_epochs = 9;
    CHECK(line.variables(heir, paths).at("FINCH_PARENT_EPOCH") == "9");
    CHECK(line.variables(heir, paths).at("FINCH_PARENT_CHECKPOINT_DIR") == "/run/evaluations/1.2/3.parent/checkpoint");
    const std::string seed = std::to_string(program_seed(5, search::Id::make(1, 2, 3)));
    CHECK(variables.at("FINCH_SEED") == seed);
    CHECK(line.json(individual(1), paths) ==
          R"({"id": "1.2.3", "seed": )" + seed +
              R"(, "folder": "/run/evaluations/1.2/3", "checkpoint_dir": "/run/evaluations/1.2/3/checkpoints", )"
              R"("resume": true, "genes": {"lr": 0.1, "layers": 4, "act": "it's \"x\""}})" +
              "\n");
}

TEST_CASE("program_seed differs between individuals and between runs") {
    CHECK(program_seed(1, search::Id{1}) != program_seed(1, search::Id{2}));
    CHECK(program_seed(1, search::Id{1}) != program_seed(2, search::Id{1}));
    CHECK(program_seed(1, search::Id{1}) < (1U << 31U));
}

TEST_CASE("different templates have different fingerprints; unreadable templates and programs are refused") {
    CHECK(fingerprint({}).empty());
    CHECK(fingerprint({{"a", "1"}}) != fingerprint({{"a", "2"}}));
    config::CommandObjective objective;
    objective.files = {{"a", "/does/not/exist"}};
    CHECK_THROWS_WITH_AS(static_cast<void>(read_templates(objective)),
                         "search.objective.files.a: /does/not/exist cannot be read, or is no file of up to 16 MiB",
                         ConfigError);
    CHECK_NOTHROW(check_program("sh"));
    CHECK_NOTHROW(check_program("/bin/sh"));
    CHECK_NOTHROW(check_program(""));
    CHECK_THROWS_AS(check_program("/etc/passwd"), ConfigError);
    CHECK_THROWS_AS(check_program("no-such-program"), ConfigError);
    CHECK_THROWS_WITH_AS(check_program("bahs"),
                         "search.objective.command: there is no program 'bahs' in PATH (did you mean 'bash'?)",
                         ConfigError);
    CHECK_THROWS_WITH_AS(check_program("~/bin/python"), doctest::Contains("started (~ is not expanded: write "),
                         ConfigError);
}

TEST_CASE("absent_script is a missing script or an argument that begins with ~/, unless a shell runs the command") {
    const testing::TemporaryFolder folder;
    std::ofstream(folder / "there.py") << "pass";
    config::CommandObjective objective;
    const search::Space space;
    const auto word = [&](const std::string& command, bool shell) {
        objective.command = command;
        objective.shell = shell;
        return CommandLine(objective, space, 1, {}, folder.path()).absent_script();
    };

    CHECK(word("python ~/train.py", false) == "~/train.py");
    CHECK(word("python ~/train.py", true).empty());
    CHECK(word("python there.py a~/b ~ out.json --a.py", false).empty());
    CHECK(word("python train.py", false) == "train.py");
    objective.files = {{"train.py", "template.py"}};
    CHECK(word("python train.py", false).empty());
}

TEST_CASE("scripts without interpreter and programs that only a relative PATH entry finds are refused") {
    const testing::TemporaryFolder folder;
    const std::string script = folder / "a-script";
    const auto refused = [](const std::string& program) {
        try {
            check_program(program);
        } catch (const ConfigError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const auto write = [&](const std::string& text) {
        std::ofstream(script, std::ios::binary) << text;
        fs::permissions(script, fs::perms::owner_all);
    };

    write("#! /bin/sh -e\ntrue\n");
    CHECK(refused(script).empty());
    write("true\n");
    CHECK(refused(script).empty());
    write("#!/no/such/interpreter -u\n");
    CHECK(refused(script).find("names the interpreter '/no/such/interpreter'") != std::string::npos);
    write("#!/usr/bin/env sh\r\n");
    CHECK(refused(script).find(script + " ends in \\r\\n") != std::string::npos);

    write("#!/bin/sh\n");
    const std::string path = std::getenv("PATH");
    const fs::path here = fs::current_path();
    fs::current_path(folder.path());
    ::setenv("PATH", (".:" + path).c_str(), 1);
    const std::string why = refused("a-script");
    ::setenv("PATH", path.c_str(), 1);
    fs::current_path(here);
    CHECK(why.find("'a-script' is found by a relative entry of PATH alone") != std::string::npos);
}

TEST_CASE("programs get the value of a fixed gene as written, in arguments, environment and JSON") {
    config::CommandObjective objective;
    objective.command = "echo {version} {one} {n} {e}";
    search::Space genes;
    genes.genes = {{"version", search::ChoiceGene{{"3.10"}}},
                   {"one", search::ChoiceGene{{"1.0"}, false, true}},
                   {"n", search::ChoiceGene{{"9007199254740993"}, false, true}},
                   {"e", search::ChoiceGene{{"1e-5"}, false, true}}};
    Individual one;
    one.id = search::Id::make(0, 0, 1);
    one.genome = {0, 0, 0, 0};
    const CommandLine line(objective, genes, 5, {}, "/here");

    CHECK(line.arguments(one, paths) == std::vector<std::string>{"echo", "3.10", "1.0", "9007199254740993", "0.00001"});
    CHECK(line.variables(one, paths).at("FINCH_GENE_version") == "3.10");
    CHECK(line.json(one, paths)
              .find("\"genes\": {\"version\": \"3.10\", \"one\": 1.0, \"n\": 9007199254740993, \"e\": 0.00001}") !=
          std::string::npos);
}
