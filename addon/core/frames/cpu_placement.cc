#include "frames/cpu_placement.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace dke {

CpuPlacement::Step CpuPlacement::Check(bool together, int64_t now) {
  if (!together) {
    together_ = 0;
    watching_ = false;
    apart_ = std::min(apart_ + 1, kChecks);
    if (apart_ == kChecks) pause_ = 0;
    return Step::kStay;
  }
  apart_ = 0;
  if (watching_) {
    if (now - since_ < kWatch) return Step::kStay;
    watching_ = false;
    together_ = 0;
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    next_ = now + pause_;
    return Step::kEnd;
  }
  if (++together_ < kChecks || now < next_) return Step::kStay;
  watching_ = true;
  since_ = now;
  return Step::kBegin;
}

namespace {

// The next field of a line, without the spaces before it; empty at its end.
std::string_view TakeField(std::string_view* line) {
  const size_t from = std::min(line->find_first_not_of(' '), line->size());
  const size_t to = std::min(line->find(' ', from), line->size());
  const std::string_view field = line->substr(from, to - from);
  line->remove_prefix(to);
  return field;
}

bool ReadNumber(std::string_view field, uint64_t* value) {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), *value);
  return !field.empty() && error == std::errc() && end == field.data() + field.size();
}

// proc(5): user nice system idle iowait, and more that others took.
constexpr int kIdleField = 3;
constexpr int kWaitField = 4;

}  // namespace

std::vector<CpuTime> ParseCpuTimes(std::string_view text) {
  std::vector<CpuTime> times;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view name = TakeField(&line);
    uint64_t cpu = 0;
    if (name.substr(0, 3) != "cpu" || !ReadNumber(name.substr(3), &cpu) || cpu >= CPU_SETSIZE) continue;
    if (times.size() <= cpu) times.resize(cpu + 1);
    uint64_t ticks = 0;
    for (int field = 0; ReadNumber(TakeField(&line), &ticks); ++field) {
      times[cpu].all += ticks;
      if (field == kIdleField || field == kWaitField) times[cpu].idle += ticks;
    }
  }
  return times;
}

std::vector<CpuTime> ReadCpuTimes() {
  const int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  // The CPUs come first, some 80 bytes each; the rest is long and not needed here.
  std::string text(64 * 1024, '\0');
  size_t length = 0;
  ssize_t got;
  while (length < text.size() && (got = read(fd, text.data() + length, text.size() - length)) > 0) {
    length += static_cast<size_t>(got);
    if (std::string_view(text).substr(0, length).find("\nintr") != std::string_view::npos) break;
  }
  close(fd);
  return ParseCpuTimes(std::string_view(text).substr(0, length));
}

int IdleCpu(const std::vector<CpuTime>& before, const std::vector<CpuTime>& after, const cpu_set_t& allowed, int own) {
  int best = -1;
  double most = 0.9;
  for (size_t cpu = 0; cpu < std::min(before.size(), after.size()); ++cpu) {
    if (static_cast<int>(cpu) == own || !CPU_ISSET(cpu, &allowed) || after[cpu].all <= before[cpu].all || after[cpu].idle < before[cpu].idle) continue;
    const double idle = static_cast<double>(after[cpu].idle - before[cpu].idle) / static_cast<double>(after[cpu].all - before[cpu].all);
    if (idle < most || (best >= 0 && idle == most)) continue;
    most = idle;
    best = static_cast<int>(cpu);
  }
  return best;
}

bool MoveTo(int cpu) {
  cpu_set_t allowed;
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(cpu, &there);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || !CPU_ISSET(cpu, &allowed)) return false;
  const bool gone = sched_setaffinity(0, sizeof there, &there) == 0;
  return gone && sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

}  // namespace dke
