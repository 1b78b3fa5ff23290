#include "shim/iterations/detector.h"

#include <algorithm>
#include <vector>

namespace shim::iterations {
namespace {

constexpr uint64_t kRounds = 2;          // that confirm a period at whose cut the host waits
constexpr uint64_t kRoundsUnsynced = 5;  // where it does not: micro-batches and layers repeat, too
constexpr size_t kEndOps = 4;            // operations that tell a body's end
constexpr uint64_t kSweepsMax = 4096;    // launches of one kernel up to where the host waits
// What levels of memory may differ by and still be the same: a share of the period's swing.
constexpr uint64_t kLevelShare = 16;
constexpr uint64_t kLevelNoiseShare = 64;  // of the level: less swing than this is none
// How much may deviate before the lock is given up.
constexpr uint64_t kPatienceBodies = 16, kPatienceOps = 4096;

}  // namespace

Decision Detector::Judge(const Op& op) {
  Decision decision;
  if (locked_ && bodies_.MayStart(op.identity) && Starts(op)) {
    decision = Finish();
    Begin(op);
  }
  if (op.synced) last_wait_ = history_.size();
  history_.Push(op);
  if (locked_) Follow(op);
  const bool astray = !locked_ || (place_.body == Bodies::kNone &&
                                   (place_.complete == Bodies::kNone || place_.tail_computes));
  finder_.Advance(history_, astray);
  if (history_.size() >= next_try_ && finder_.repeats()) {
    if (astray) {
      TryLock();
    } else {
      TryWiden();
    }
  }
  return decision;
}

void Detector::Note(const Op& op, bool boundary) {
  if (boundary) last_ = {last_.end, history_.size()};
  history_.Push(op);
}

// --- following what is known ---------------------------------------------------------------------

// REQUIRES: locked_.
bool Detector::Starts(const Op& op) const {
  if (place_.body != Bodies::kNone) {
    const Body& body = bodies_.at(place_.body);
    if (place_.next < body.size() && body.ops[place_.next] == op.identity) return false;
  }
  if (!place_.computes) return false;  // uploads alone are no iteration
  // What follows a complete body and computes nothing (results read back, the next epoch's order)
  // is its tail; the first operation that can begin a body ends both.
  if (place_.complete != Bodies::kNone && !place_.tail_computes)
    return bodies_.Starting(op.identity) != Bodies::kNone;
  if (bodies_.AlwaysStarts(op)) return true;
  return EndsLikeABody() && bodies_.Starting(op.identity) != Bodies::kNone;
}

bool Detector::EndsLikeABody() const {
  if (primary_ == Bodies::kNone) return false;
  const Body& body = bodies_.at(primary_);
  if (body.size() < kEndOps || history_.size() < place_.begin + kEndOps) return false;
  for (size_t i = 1; i <= kEndOps; ++i) {
    if (body.ops[body.size() - i] != history_.identity(history_.size() - i)) return false;
  }
  return true;
}

void Detector::SetPrimary(int body) {
  primary_ = body;
  widens_at_ = body == Bodies::kNone ? UINT64_MAX : 2 * bodies_.at(body).size();
}

// Ends the iteration here: names its body, and learns its operations as a body when none is known.
Decision Detector::Finish() {
  ++boundaries_;
  last_ = {place_.begin, history_.size()};
  Decision decision;
  decision.boundary = true;
  const bool known = place_.complete != Bodies::kNone && !place_.tail_computes;
  if (place_.complete != Bodies::kNone) bodies_.Use(place_.complete);
  if (known) {
    decision.body = bodies_.at(place_.complete).id;
    return decision;
  }
  const uint64_t end = history_.size();
  // After a known body the host waited and then went on to something else: a body of its own.
  const uint64_t begin = place_.tail_cut != 0 ? place_.tail_cut : place_.begin;
  if (end - begin > History::kSize / 4 || !Computes(begin, end)) return decision;
  const uint32_t primary_id = primary_ == Bodies::kNone ? 0 : bodies_.at(primary_).id;
  const int learned = bodies_.Learn(history_, begin, end - begin);
  if (learned != Bodies::kNone) decision.body = bodies_.at(learned).id;
  if (primary_ != Bodies::kNone && bodies_.at(primary_).id != primary_id) SetPrimary(Bodies::kNone);
  return decision;
}

void Detector::Begin(const Op& op) {
  place_ = Place();
  place_.begin = history_.size();
  place_.body = bodies_.Starting(op.identity);
}

void Detector::Follow(const Op& op) {
  place_.computes = place_.computes || op.computes;
  if (place_.body != Bodies::kNone) {
    const Body* body = &bodies_.at(place_.body);
    if (place_.next == body->size() || body->ops[place_.next] != op.identity) {
      const uint64_t hash = History::Extend(body->prefix[place_.next], op.identity);
      place_.body = bodies_.WithPrefix(place_.next + 1, hash);
      body = place_.body == Bodies::kNone ? nullptr : &bodies_.at(place_.body);
    }
    if (body != nullptr && ++place_.next == body->size()) {
      place_.complete = place_.body;
      place_.tail = history_.size();
      place_.tail_cut = 0;
      place_.tail_computes = false;
      return;
    }
  }
  if (place_.complete != Bodies::kNone) NoteTail(op);
  const uint64_t since = history_.size() - place_.begin;
  const uint64_t usual = primary_ == Bodies::kNone ? 0 : bodies_.at(primary_).size();
  if (since > kPatienceBodies * usual + kPatienceOps) locked_ = false;
}

void Detector::NoteTail(const Op& op) {
  if (place_.tail_computes) return;
  if (op.synced) place_.tail_cut = history_.size() - 1;
  place_.tail_computes = op.computes;
}

// --- finding what is not known -------------------------------------------------------------------

bool Detector::Computes(uint64_t begin, uint64_t end) const {
  for (uint64_t i = begin; i < end; ++i) {
    if (history_.computes(i)) return true;
  }
  return false;
}

// The best cut of the last round: memory low, then the host waiting, then where the loop began.
Detector::Cut Detector::FindCut() const {
  const uint64_t period = finder_.period(), end = history_.size(), begin = end - period;
  uint64_t lowest = UINT64_MAX, highest = 0;
  for (uint64_t i = begin; i < end; ++i) {
    lowest = std::min(lowest, history_.live_bytes(i));
    highest = std::max(highest, history_.live_bytes(i));
  }
  const uint64_t swing = highest - lowest;
  const bool flat = swing < highest / kLevelNoiseShare;
  const uint64_t low = flat ? highest : lowest + swing / kLevelShare;
  const uint64_t first = begin + (period - (begin - finder_.begin(history_)) % period) % period;
  // A place where the host waits counts only when the device computes before the next wait. Copies
  // of results that follow a wait, and end in another wait, still belong to the ending iteration.
  const auto worthwhile = [&](uint64_t position, uint64_t* stretch) {
    bool computes = false;
    for (*stretch = 0; *stretch < period; ++*stretch) {
      const uint64_t at = begin + (position - begin + *stretch) % period;
      if (*stretch > 0 && history_.synced(at)) break;
      computes = computes || history_.computes(at);
    }
    return computes;
  };
  // Of these the lowest, finely: gradients that wait for more micro-batches are little memory.
  uint64_t floor = UINT64_MAX, stretch = 0;
  bool reading = false;
  const auto fits = [&](uint64_t position) {
    return history_.live_bytes(position) <= low && history_.synced(position) &&
           (worthwhile(position, &stretch) || reading);
  };
  const auto find_floor = [&] {
    for (uint64_t i = begin; i < end; ++i) {
      if (history_.live_bytes(i) < floor && fits(i)) floor = history_.live_bytes(i);
    }
  };
  find_floor();
  // Where only a wait before a read-back has low memory (the next batch is allocated before the
  // next wait), that is the place.
  if (floor == UINT64_MAX) {
    reading = true;
    find_floor();
  }
  Cut cut;
  uint64_t most = 0;  // operations up to the next wait: the longest stretch begins the iteration
  for (uint64_t i = 0; i < period; ++i) {
    const uint64_t position = begin + (first - begin + i) % period;
    if (!cut.fits && history_.live_bytes(position) <= low) {
      cut = {position, low, false, true};  // none where the host waits: where it all began
    }
    if (floor == UINT64_MAX || history_.live_bytes(position) > floor + floor / kLevelNoiseShare)
      continue;
    if (!fits(position)) continue;
    if (i == 0) stretch = period + 1;
    if (stretch <= most) continue;
    most = stretch;
    cut = {position, floor + floor / kLevelNoiseShare, true, true};
  }
  return cut;
}

// Without a wait of the host only memory and sizes can tell a layer, or one of many preparations,
// from an iteration: they are the same again.
bool Detector::ComesBack(uint64_t cut) const {
  const uint64_t period = finder_.period();
  const uint64_t now = history_.live_bytes(cut), before = history_.live_bytes(cut - period);
  uint64_t highest = before;
  for (uint64_t i = cut - period; i < cut; ++i) {
    if (history_.shape(i) != history_.shape(i - period)) return false;
    highest = std::max(highest, history_.live_bytes(i));
  }
  return std::max(now, before) - std::min(now, before) <= (highest - before) / kLevelShare;
}

void Detector::TryLock() {
  const uint64_t period = finder_.period(), rounds = finder_.rounds();
  if (rounds < kRounds) return;
  if (locked_) {
    // Only when all of it is astray: known bodies that merely alternate are followed as they are.
    const uint64_t astray = place_.complete != Bodies::kNone ? place_.tail : place_.begin;
    if (history_.size() - astray < 2 * period) return;
  }
  next_try_ = history_.size() + period;
  const Cut cut = FindCut();
  if (!cut.fits || !Computes(history_.size() - period, history_.size())) return;
  if (!cut.synced) {
    if (rounds < kRoundsUnsynced || !ComesBack(cut.position)) return;
    // Equal launches at the end of something longer explain only themselves.
    if (2 * (finder_.run() + period) < history_.size() - last_wait_) return;
  }
  LockAt(cut);
}

// The places of [begin, end) where an iteration begins as at `begin`: several make up one period,
// as when two networks are trained by turns.
std::vector<uint64_t> Detector::Beginnings(const Cut& cut, uint64_t begin, uint64_t end) const {
  std::vector<uint64_t> beginnings = {begin};
  bool computes = false;  // since the last of them
  for (uint64_t i = begin; i < end; ++i) {
    const bool alike = cut.synced && history_.synced(i) && history_.live_bytes(i) <= cut.low &&
                       history_.identity(i) == history_.identity(begin);
    if (i != begin && alike && computes) {
      beginnings.push_back(i);
      computes = false;
    }
    computes = computes || history_.computes(i);
  }
  return beginnings;
}

void Detector::LockAt(const Cut& cut) {
  const uint64_t period = finder_.period(), begin = cut.position - period, end = cut.position;
  std::vector<uint64_t> beginnings = Beginnings(cut, begin, end);
  if (beginnings.size() > Bodies::kMax / 2) beginnings.resize(1);
  beginnings.push_back(end);
  int primary = Bodies::kNone;
  for (size_t i = 0; i + 1 < beginnings.size(); ++i) {
    const int body = bodies_.Learn(history_, beginnings[i], beginnings[i + 1] - beginnings[i]);
    if (body == Bodies::kNone) return;
    if (i == 0) primary = body;
    bodies_.Use(body);
    const uint64_t now = beginnings[i] + period;  // the same place in the round that runs
    if (now >= history_.size()) continue;
    place_ = Place();
    place_.begin = now;
    place_.body = body;
    place_.next = history_.size() - now;
    place_.computes = Computes(now, history_.size());
    if (place_.next < bodies_.at(body).size()) continue;
    place_.complete = body;
    place_.tail = history_.size();
  }
  locked_ = true;
  SetPrimary(primary);
}

// Whether the body locked on is a part of a larger round that ends where the host waits, or where
// memory is lower: micro-batches of one step, equal layers of one pass.
void Detector::TryWiden() {
  const uint64_t period = finder_.period();
  if (period < widens_at_) return;
  const Body& part = bodies_.at(primary_);
  next_try_ = history_.size() + period;
  const Cut cut = FindCut();
  if (!cut.fits) return;
  if (!IsPartOf(part, cut)) return;
  bodies_.Clear();
  SetPrimary(Bodies::kNone);
  LockAt(cut);
}

bool Detector::IsPartOf(const Body& part, const Cut& cut) const {
  constexpr uint64_t kPartsMax = 128;
  const uint64_t period = finder_.period(), begin = cut.position - period;
  uint64_t parts = 0, parts_low = 0, others = 0;
  bool waited = false, divided = false;
  for (uint64_t i = begin; i < cut.position;) {
    const bool whole = i + part.size() <= cut.position &&
                       history_.Hash(i, part.size()) == part.prefix[part.size()];
    const uint64_t end = whole ? i + part.size() : i + 1;
    if (whole) {
      ++parts;
      parts_low += history_.live_bytes(i) <=
                   history_.live_bytes(begin) + history_.live_bytes(begin) / kLevelNoiseShare;
    }
    for (; i < end; ++i) {
      waited = waited || (i != begin && history_.synced(i));
      divided = divided || (waited && history_.computes(i));
      others += !whole && history_.computes(i);
    }
  }
  if (parts < 2) return false;
  // One kernel by itself, over and over, is a sweep of a solver, and no iteration.
  if (part.size() == 1 && !part.synced_start && cut.synced && !divided) return parts <= kSweepsMax;
  if (parts > kPartsMax) return false;
  if (cut.synced && !part.synced_start && !divided && others > 0) return true;
  return parts_low * 2 <= parts;
}

}  // namespace shim::iterations
