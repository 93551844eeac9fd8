// function_value NAME DIMENSIONS INSTANCE: computes a shifted and rotated function for a program that is the objective.
// Reads one point per line (its coordinates) and prints the value with all digits, so that it reads back bitwise equal.
#include "finch/base/format.hpp"
#include "finch/search/function.hpp"

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

int main(int count, char** words) {
    using namespace finch::search;
    if (count != 4) {
        return 2;
    }
    const FunctionInstance instance(find_function(words[1]), std::atoi(words[2]),
                                    {.shift = true, .rotate = true, .instance = std::atoll(words[3])});
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream numbers(line);
        std::vector<double> x;
        for (std::string word; numbers >> word;) {
            x.push_back(std::strtod(word.c_str(), nullptr));
        }
        std::cout << fmt::format("{}", instance.value(x)) << std::endl;
    }
    return 0;
}
