#include "finch/base/named_array.hpp"

#include "finch/base/error.hpp"

namespace finch {

const NamedArray& find_array(const NamedArrays& arrays, const std::string& name) {
    for (const NamedArray& array : arrays) {
        if (array.name == name) {
            return array;
        }
    }
    throw FileError("there is no array called '" + name + "'");
}

}  // namespace finch
