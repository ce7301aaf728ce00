// See the header. Opcodes: CPython, Lib/pickletools.py; torch/csrc/jit/serialization/pickler.h.
#include "read/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <vector>

namespace lockstep {
namespace {

enum Opcode : std::uint8_t {
  kMark = '(', kStop = '.', kPop = '0', kPopMark = '1', kDup = '2', kBinFloat = 'G', kBinInt = 'J', kBinInt1 = 'K',
  kBinInt2 = 'M', kNone = 'N', kBinString = 'T', kShortBinString = 'U', kBinUnicode = 'X', kAppend = 'a', kDict = 'd',
  kEmptyDict = '}', kAppends = 'e', kBinGet = 'h', kLongBinGet = 'j', kList = 'l', kEmptyList = ']', kBinPut = 'q',
  kLongBinPut = 'r', kSetItem = 's', kTuple = 't', kEmptyTuple = ')', kSetItems = 'u', kBinBytes = 'B',
  kShortBinBytes = 'C', kProto = 0x80, kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87, kNewTrue = 0x88,
  kNewFalse = 0x89, kLong1 = 0x8a, kLong4 = 0x8b, kShortBinUnicode = 0x8c, kBinUnicode8 = 0x8d, kBinBytes8 = 0x8e,
  kMemoize = 0x94, kFrame = 0x95,
};

/// Those that occur in pickles and have no place in plain data of protocol 2 and above.
std::string_view refused_name(std::uint8_t opcode) {
  switch (opcode) {
    case 'c': return "GLOBAL";
    case 'R': return "REDUCE";
    case 'b': return "BUILD";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 'P': return "PERSID";
    case 'Q': return "BINPERSID";
    case 'F': return "FLOAT";
    case 'I': return "INT";
    case 'L': return "LONG";
    case 'S': return "STRING";
    case 'V': return "UNICODE";
    case 'g': return "GET";
    case 'p': return "PUT";
    case 0x81: return "NEWOBJ";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 0x8f: return "EMPTY_SET";
    case 0x90: return "ADDITEMS";
    case 0x91: return "FROZENSET";
    case 0x92: return "NEWOBJ_EX";
    case 0x93: return "STACK_GLOBAL";
    case 0x96: return "BYTEARRAY8";
    case 0x97: return "NEXT_BUFFER";
    case 0x98: return "READONLY_BUFFER";
    default: return {};
  }
}

class PickleReader {
 public:
  PickleReader(std::string_view bytes, PlainBuilder& builder)
      : begin_(reinterpret_cast<const unsigned char*>(bytes.data())), at_(begin_), end_(begin_ + bytes.size()), builder_(builder) {}

  std::optional<PickleStop> read() {
    while (at_ != end_) {
      opcode_at_ = at_;
      const std::uint8_t opcode = *at_++;
      // A dump is mostly names that it had before: a branch of their own is foretold better than the one jump of all opcodes.
      if (opcode == kBinGet && at_ != end_ && *at_ < memo_.size()) {
        if (!builder_.push(memo_[*at_++])) return stop(opcode);
        continue;
      }
      if (opcode == kStop) return std::nullopt;
      if (!step(opcode)) return stop(opcode);
    }
    opcode_at_ = at_;
    short_ = true;
    return stop(0);
  }

 private:
  PickleStop stop(std::uint8_t opcode) const {
    const auto offset = static_cast<std::size_t>(opcode_at_ - begin_);
    if (short_) return {true, fmt::format("ends in the middle, at offset {}", offset)};
    if (!problem_.empty()) return {false, fmt::format("{} at offset {}", problem_, offset)};
    if (const std::string_view name = refused_name(opcode); !name.empty()) {
      return {false, fmt::format("opcode {} at offset {}: not plain data, refused", name, offset)};
    }
    if (!builder_.error().empty()) return {false, fmt::format("{} at offset {}", builder_.error(), offset)};
    return {false, fmt::format("byte 0x{:02x} at offset {} is no opcode", opcode, offset)};
  }

  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  /// A little-endian number of so many bytes; nothing where they are not there.
  std::optional<std::uint64_t> number(std::size_t bytes) {
    if (left() < bytes) {
      short_ = true;
      return std::nullopt;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(at_[i]) << (8 * i);
    at_ += bytes;
    return value;
  }

  bool text(std::size_t length_bytes, bool keep) {
    const auto length = number(length_bytes);
    if (!length) return false;
    if (*length > left()) {
      short_ = true;
      return false;
    }
    if (*length > 0xffffffffULL) return refuse("text of more than 4 GiB");
    const std::string_view value(reinterpret_cast<const char*>(at_), *length);
    at_ += *length;
    return builder_.push(keep ? PlainValue::of_text(value) : PlainValue{});
  }

  bool integer(std::size_t bytes, bool is_signed) {
    const auto value = number(bytes);
    if (!value) return false;
    const auto wide = static_cast<std::int64_t>(*value);
    return builder_.push(PlainValue::of_integer(is_signed ? static_cast<std::int32_t>(*value) : wide));
  }

  /// Two's complement of any length; what does not fit into 64 bits is no number that a dump has.
  bool long_integer(std::size_t length_bytes) {
    const auto length = number(length_bytes);
    if (!length) return false;
    if (*length > left()) {
      short_ = true;
      return false;
    }
    std::uint64_t value = 0;
    const std::size_t used = *length < 8 ? *length : 8;
    for (std::size_t i = 0; i < used; ++i) value |= static_cast<std::uint64_t>(at_[i]) << (8 * i);
    const bool negative = *length > 0 && (at_[*length - 1] & 0x80) != 0;
    if (negative && used < 8) value |= ~std::uint64_t{0} << (8 * used);
    const bool fits = *length <= 8 || (*length == 9 && at_[8] == (negative ? 0xff : 0) && (value >> 63 != 0) == negative);
    at_ += *length;
    return builder_.push(fits ? PlainValue::of_integer(static_cast<std::int64_t>(value)) : PlainValue{});
  }

  bool real() {
    if (left() < 8) {
      short_ = true;
      return false;
    }
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | *at_++;
    return builder_.push(PlainValue::of_real(std::bit_cast<double>(bits)));
  }

  bool put(std::optional<std::uint64_t> slot) {
    if (!slot) return false;
    if (!builder_.has_top()) return refuse("a memo of nothing");
    // Writers number memos from 0 on without gaps; a far one is an attempt at memory.
    constexpr std::uint64_t kSlack = 1024;
    if (*slot > memo_.size() + kSlack) return refuse("a memo far beyond the ones before");
    if (*slot >= memo_.size()) memo_.resize(*slot + 1);
    memo_[*slot] = builder_.top();
    builder_.pin_top();
    return true;
  }

  bool get(std::optional<std::uint64_t> slot) {
    if (!slot) return false;
    if (*slot >= memo_.size()) return refuse("a memo that was never made");
    return builder_.push(memo_[*slot]);
  }

  bool refuse(std::string_view problem) {
    problem_ = problem;
    return false;
  }

  bool step(std::uint8_t opcode) {
    switch (opcode) {
      case kProto: {
        const auto version = number(1);
        if (version && *version > 5) return refuse("a protocol above 5");
        return version.has_value();
      }
      case kFrame: return number(8).has_value();
      case kMark: return builder_.mark();
      case kPop: return builder_.pop();
      case kPopMark: return builder_.pop_mark();
      case kDup: return builder_.has_top() ? builder_.push(builder_.top()) : refuse("a copy of nothing");
      case kNone: return builder_.push({});
      case kNewTrue: return builder_.push(PlainValue::of_bool(true));
      case kNewFalse: return builder_.push(PlainValue::of_bool(false));
      case kBinInt: return integer(4, true);
      case kBinInt1: return integer(1, false);
      case kBinInt2: return integer(2, false);
      case kLong1: return long_integer(1);
      case kLong4: return long_integer(4);
      case kBinFloat: return real();
      case kBinUnicode: return text(4, true);
      case kShortBinUnicode: return text(1, true);
      case kBinUnicode8: return text(8, true);
      case kBinString: return text(4, true);
      case kShortBinString: return text(1, true);
      case kBinBytes: return text(4, false);
      case kShortBinBytes: return text(1, false);
      case kBinBytes8: return text(8, false);
      case kEmptyDict: return builder_.push_container(PlainTag::kDictionary);
      case kEmptyList:
      case kEmptyTuple: return builder_.push_container(PlainTag::kList);
      case kList:
      case kTuple: return builder_.collect_marked(PlainTag::kList);
      case kDict: return builder_.collect_marked(PlainTag::kDictionary);
      case kTuple1: return builder_.collect(PlainTag::kList, 1);
      case kTuple2: return builder_.collect(PlainTag::kList, 2);
      case kTuple3: return builder_.collect(PlainTag::kList, 3);
      case kAppend: return builder_.append_one();
      case kAppends: return builder_.append_marked();
      case kSetItem: return builder_.set_one();
      case kSetItems: return builder_.set_marked();
      case kBinPut: return put(number(1));
      case kLongBinPut: return put(number(4));
      case kMemoize: return put(memo_.size());
      case kBinGet: return get(number(1));
      case kLongBinGet: return get(number(4));
      default: return false;
    }
  }

  const unsigned char* const begin_;
  const unsigned char* at_;
  const unsigned char* const end_;
  const unsigned char* opcode_at_ = nullptr;
  PlainBuilder& builder_;
  std::vector<PlainValue> memo_;
  std::string_view problem_;
  bool short_ = false;
};

}  // namespace

std::optional<PickleStop> read_pickle(std::string_view bytes, PlainBuilder& builder) {
  return PickleReader(bytes, builder).read();
}

}  // namespace lockstep
