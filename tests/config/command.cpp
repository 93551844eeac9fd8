#include "finch/config/command.hpp"

#include "finch/config/config.hpp"

#include "config/problem.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::config;
using finch::test::contains;

namespace {

const std::vector<std::string> names{"lr", "layers", "id"};
const std::map<std::string, std::string> values{{"lr", "0.1"}, {"layers", "3"}, {"id", "0.1.2"}};

std::string command(const std::string& text) {
    return Template(text, names, Template::Braces::doubled).render(values);
}
std::string file(const std::string& text) {
    return Template(text, names, Template::Braces::literal).render(values);
}
template <class Work>
std::string refusal(Work work) {
    try {
        static_cast<void>(work());
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("command template: {name} is replaced, {{ and }} become { and }, and other braces are refused") {
    CHECK(command("--lr {lr} {layers}{id}") == "--lr 0.1 30.1.2");
    CHECK(command("awk '{{ print {lr} }}'") == "awk '{ print 0.1 }'");
    CHECK(command("{{lr}}") == "{lr}");
    CHECK(command("") == "");
    CHECK(contains(refusal([] { return command("{lrr}"); }), "{lrr} names no gene; did you mean {lr}?"));
    CHECK(contains(refusal([] { return command("echo ${HOME}"); }), "; for a shell: $HOME or ${{HOME}};"));
    CHECK(contains(refusal([] { return command("a { b"); }), "has a '{' around no name, at character 3"));
    CHECK(contains(refusal([] { return command("a } b"); }), "has a '}' around no name"));
    CHECK(contains(refusal([] { return command("{1}"); }), "around no name"));
}

TEST_CASE("file template: braces that do not enclose a name are kept unchanged") {
    CHECK(file(R"({"a": {"lr": {lr}}, "b": {}})") == R"({"a": {"lr": 0.1}, "b": {}})");
    CHECK(file("{{lr}} {{}} {{ {1} }} {") == "{lr} {{}} {{ {1} }} {");
    CHECK(file("{{lr}") == "{0.1");
    CHECK(contains(refusal([] { return file("{layer}"); }), "did you mean {layers}?"));
}

TEST_CASE("split_command splits a command into words like a POSIX shell") {
    using Words = std::vector<std::string>;
    CHECK(split_command("  a  b\n\tc ") == Words{"a", "b", "c"});
    CHECK(split_command(R"(a 'b  "c"' "d 'e' \"f\"" g\ h '' x"y"'z')") ==
          Words{"a", "b  \"c\"", "d 'e' \"f\"", "g h", "", "xyz"});
    CHECK(split_command(R"('a\b')") == Words{R"(a\b)"});
    CHECK(contains(refusal([] { return split_command("a 'b"); }), "open quote '"));
    CHECK(contains(refusal([] { return split_command("   "); }), "is empty"));
    CHECK(contains(refusal([] { return split_command("'' a"); }), "is empty"));
}

TEST_CASE("shell_word finds shell operators (&&, 2>&1, >) outside of quotes") {
    CHECK(shell_word("make && ./run") == "&&");
    CHECK(shell_word("./run 2>&1 | tee log") == "2>&1");
    CHECK(shell_word("./run > log").front() == '>');
    CHECK(shell_word("sh -c 'a | b'").empty());
    CHECK(shell_word("cut -d '|' file").empty());
    CHECK(shell_word("./run a&&b").empty());
}

TEST_CASE("a command objective parses without data, model and training sections and refuses them") {
    const std::string space = "space: {lr: {real: [0, 1]}}, ";
    const auto parsed = [&](const std::string& objective, const std::string& more = "") {
        return parse("search: {" + space + "objective: {" + objective + "}" + more + "}", "f");
    };
    const Config config = parsed("command: 'train {lr}', files: {a/b.json: t.json}, timeout_seconds: 5, keep: best");
    const auto& objective = std::get<CommandObjective>(config.objective);
    CHECK(objective.command == "train {lr}");
    CHECK(objective.files == std::map<std::string, std::string>{{"a/b.json", "t.json"}});
    CHECK(objective.timeout_seconds == 5);
    CHECK(objective.keep == Keep::best);
    CHECK(objective.launch == Launch::ranks);
    CHECK_FALSE(config.trains());
    CHECK(config.space.size() == 1);
    CHECK(parse(config.text(), "f").text() == config.text());

    CHECK(parsed("command: a, timeout_seconds: 5, keep: all, grace_seconds: 1").fixed_text() ==
          parsed("command: a").fixed_text());
    CHECK(parsed("command: a").fixed_text() != parsed("command: b").fixed_text());
    CHECK(std::holds_alternative<FunctionObjective>(parse("search: {objective: {function: sphere}}", "f").objective));

    const auto problem = [&](const std::string& objective_text, const std::string& more = "") {
        return refusal([&] { return parsed(objective_text, more).text(); });
    };
    CHECK(contains(problem("command: a, timeout_second: 5"), "did you mean 'timeout_seconds'?"));
    CHECK(contains(problem("command: a, files: {../b: t}"), "accepted: a relative path without '..'"));
    CHECK(contains(problem("command: a, files: {/b: t}"), "accepted: a relative path without '..'"));
    CHECK(contains(problem("command: a, files: {checkpoints: t}"), "is the folder of FINCH_CHECKPOINT_DIR"));
    CHECK(contains(problem("command: a, files: {./checkpoints: t}"), "is the folder of FINCH_CHECKPOINT_DIR"));
    CHECK(problem("command: a, files: {checkpoints/a: t}").empty());
    CHECK(contains(problem("command: ' ', shell: true"), "search.objective.command: is empty"));
    CHECK(problem("command: \"echo '\", shell: true").empty());
    CHECK(contains(problem("command: \"'\""), "search.objective.command: has an open quote"));
    CHECK(contains(problem("command: a", ", pruning: curve"), "search.objective.epochs is not set"));
    CHECK(problem("command: a, epochs: 9", ", pruning: curve").empty());
    for (const char* section : {"data: {kind: generated}", "model: [flatten]", "training: {epochs: 3}"}) {
        CAPTURE(section);
        CHECK(contains(refusal([section] {
                           return parse(std::string(section) + "\nsearch: {objective: {command: a}}", "f").text();
                       }),
                       "means nothing beside search.objective.command"));
    }
    CHECK(contains(
        refusal([] { return parse("search: {space: {seed: {int: [0, 1]}}, objective: {command: a}}", "f").text(); }),
        "{seed} has another meaning in commands"));
}
