// list.sort as CPython 3.11 and 3.12 do it. Frameworks sort by comparisons that contradict themselves (a before b
// before c before a), and then the order depends on which elements the sort happens to compare.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::plan {

/// Runs that are there or made by insertion, merged by their "power", with galloping; the method is described in
/// CPython's Objects/listsort.txt. For an order without contradictions it is std::stable_sort.
template <class T, class Less>
class PythonSort {
 public:
  PythonSort(std::vector<T>& list, Less less) : list_(list), less_(std::move(less)) {}

  void run() {
    if (list_.size() < 2) return;
    std::size_t shortest = list_.size();
    std::size_t odd = 0;
    for (; shortest >= 64; shortest >>= 1U) odd |= shortest & 1U;
    shortest += odd;
    for (std::size_t first = 0; first < list_.size();) {
      std::size_t length = natural_run(first);
      if (length < shortest) {
        const std::size_t forced = std::min(list_.size() - first, shortest);
        insert_into_run(first, first + length, first + forced);
        length = forced;
      }
      add_run(first, length);
      first += length;
    }
    while (runs_.size() > 1) {
      std::size_t i = runs_.size() - 2;
      if (i > 0 && runs_[i - 1].length < runs_[i + 1].length) --i;
      merge_run(i);
    }
  }

 private:
  struct Run {
    std::size_t first = 0, length = 0;
    int power = 0;  // of the border to the next run
  };
  static constexpr std::size_t kMinGallop = 7;

  /// Length of what ascends from `first` on; what descends strictly is turned round.
  std::size_t natural_run(std::size_t first) {
    std::size_t end = first + 1;
    if (end == list_.size()) return 1;
    const bool descends = less_(list_[end], list_[first]);
    for (++end; end < list_.size() && less_(list_[end], list_[end - 1]) == descends;) ++end;
    if (descends) std::reverse(at(first), at(end));
    return end - first;
  }

  void insert_into_run(std::size_t first, std::size_t sorted, std::size_t end) {
    for (; sorted < end; ++sorted) {
      std::size_t low = first;
      for (std::size_t high = sorted; low < high;) {
        const std::size_t middle = low + (high - low) / 2;
        if (less_(list_[sorted], list_[middle]))
          high = middle;
        else
          low = middle + 1;
      }
      std::rotate(at(low), at(sorted), at(sorted + 1));
    }
  }

  void add_run(std::size_t first, std::size_t length) {
    if (!runs_.empty()) {
      const int power = power_of_border(runs_.back(), length);
      while (runs_.size() > 1 && runs_[runs_.size() - 2].power > power) merge_run(runs_.size() - 2);
      runs_.back().power = power;
    }
    runs_.push_back({first, length, 0});
  }

  /// How deep in a balanced tree over the list the border between two runs would lie.
  int power_of_border(const Run& left, std::size_t right_length) const {
    const std::size_t size = list_.size();
    std::size_t a = 2 * left.first + left.length;
    std::size_t b = a + left.length + right_length;
    for (int power = 1;; ++power, a <<= 1U, b <<= 1U) {
      if (a >= size) {
        a -= size;
        b -= size;
      } else if (b >= size) {
        return power;
      }
    }
  }

  void merge_run(std::size_t i) {
    const Run left = runs_[i];
    const Run right = runs_[i + 1];
    runs_[i].length += right.length;
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    std::vector<T> a(at(left.first), at(right.first));
    std::vector<T> b(at(right.first), at(right.first + right.length));
    // What is in place at both ends stays there.
    const std::size_t skip = last_place(b.front(), a, 0, a.size(), 0);
    if (skip == a.size()) return;
    a.erase(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(skip));
    b.resize(first_place(a.back(), b, 0, b.size(), b.size() - 1));
    if (b.empty()) return;
    const std::vector<T> merged = a.size() <= b.size() ? merge_up(a, b) : merge_down(a, b);
    std::ranges::copy(merged, at(left.first + skip));
  }

  std::vector<T> merge_up(const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<T> out;
    std::size_t i = 0, j = 0;
    const auto take_a = [&](std::size_t n) { for (; n > 0; --n) out.push_back(a[i++]); };
    const auto take_b = [&](std::size_t n) { for (; n > 0; --n) out.push_back(b[j++]); };
    const auto done = [&] { return j == b.size() || a.size() - i <= 1; };
    take_b(1);
    while (!done()) {
      std::size_t in_a = 0, in_b = 0;
      while (!done() && in_a < gallop_ && in_b < gallop_) {
        if (less_(b[j], a[i])) {
          take_b(1);
          ++in_b;
          in_a = 0;
        } else {
          take_a(1);
          ++in_a;
          in_b = 0;
        }
      }
      if (done()) break;
      ++gallop_;
      do {
        if (gallop_ > 1) --gallop_;
        in_a = last_place(b[j], a, i, a.size(), i) - i;
        take_a(in_a);
        if (in_a > 0 && done()) break;
        take_b(1);
        if (j == b.size()) break;
        in_b = first_place(a[i], b, j, b.size(), j) - j;
        take_b(in_b);
        if (j == b.size()) break;
        take_a(1);
      } while (!done() && (in_a >= kMinGallop || in_b >= kMinGallop));
      if (!done()) ++gallop_;
    }
    // With one of a left, it is known to come last.
    if (a.size() - i == 1) take_b(b.size() - j);
    take_a(a.size() - i);
    take_b(b.size() - j);
    return out;
  }

  std::vector<T> merge_down(const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<T> out;  // from the end
    std::size_t i = a.size(), j = b.size();
    const auto take_a = [&](std::size_t n) { for (; n > 0; --n) out.push_back(a[--i]); };
    const auto take_b = [&](std::size_t n) { for (; n > 0; --n) out.push_back(b[--j]); };
    const auto done = [&] { return i == 0 || j <= 1; };
    take_a(1);
    while (!done()) {
      std::size_t in_a = 0, in_b = 0;
      while (!done() && in_a < gallop_ && in_b < gallop_) {
        if (less_(b[j - 1], a[i - 1])) {
          take_a(1);
          ++in_a;
          in_b = 0;
        } else {
          take_b(1);
          ++in_b;
          in_a = 0;
        }
      }
      if (done()) break;
      ++gallop_;
      do {
        if (gallop_ > 1) --gallop_;
        in_a = i - last_place(b[j - 1], a, 0, i, i - 1);
        take_a(in_a);
        if (i == 0) break;
        take_b(1);
        if (j == 1) break;
        in_b = j - first_place(a[i - 1], b, 0, j, j - 1);
        take_b(in_b);
        if (in_b > 0 && done()) break;
        take_a(1);
      } while (!done() && (in_a >= kMinGallop || in_b >= kMinGallop));
      if (!done()) ++gallop_;
    }
    // With one of b left, it is known to come first.
    if (j == 1) take_a(i);
    take_b(j);
    take_a(i);
    std::ranges::reverse(out);
    return out;
  }

  /// Where `key` goes among list[low..high): before what is equal. Steps double from `hint`, which is below `high`.
  std::size_t first_place(const T& key, const std::vector<T>& list, std::size_t low, std::size_t high,
                          std::size_t hint) {
    return place([&](const T& element) { return less_(element, key); }, list, low, high, hint);
  }
  /// Behind what is equal.
  std::size_t last_place(const T& key, const std::vector<T>& list, std::size_t low, std::size_t high,
                         std::size_t hint) {
    return place([&](const T& element) { return !less_(key, element); }, list, low, high, hint);
  }

  template <class Before>
  std::size_t place(Before before, const std::vector<T>& list, std::size_t low, std::size_t high,
                    std::size_t hint) {
    std::size_t near = 0, step = 1, from = 0, to = 0;
    if (before(list[hint])) {
      const std::size_t most = high - hint;
      for (; step < most && before(list[hint + step]); step = 2 * step + 1) near = step;
      from = hint + near + 1;
      to = hint + std::min(step, most);
    } else {
      const std::size_t most = hint - low + 1;
      for (; step < most && !before(list[hint - step]); step = 2 * step + 1) near = step;
      from = hint + 1 - std::min(step, most);
      to = hint - near;
    }
    while (from < to) {
      const std::size_t middle = from + (to - from) / 2;
      if (before(list[middle]))
        from = middle + 1;
      else
        to = middle;
    }
    return to;
  }

  typename std::vector<T>::iterator at(std::size_t i) {
    return list_.begin() + static_cast<std::ptrdiff_t>(i);
  }

  std::vector<T>& list_;
  Less less_;
  std::vector<Run> runs_{};
  std::size_t gallop_ = kMinGallop;  // elements in a row from one side before steps double
};

template <class T, class Less>
void python_sort(std::vector<T>& list, Less less) {
  PythonSort<T, Less>(list, std::move(less)).run();
}

}  // namespace lockstep::plan
