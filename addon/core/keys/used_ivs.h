// Which initial values each key has encrypted with, so that none is used twice: under GCM a repeat
// reveals the difference of two messages, and lets an attacker who saw both forge a third (SP
// 800-38D, section 8). Who the key is, and when an IV counts as used, is the caller's business
// (provider/agent/objects/used-ivs.ts).
//
// Each owner has a share of its own, which no other owner can use up: at least the last
// IvsEach(owners) of its IVs are remembered, until the process ends. Of each, eight bytes are kept:
// SipHash-2-4 (Aumasson and Bernstein, 2012) under a random key, so that collisions cannot be
// searched for; a collision only means that an unused IV is refused. Usable from every thread, and
// no call waits for a table that grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dke {

struct KeyIdentity {
  const uint8_t* data;
  size_t size;
};

// One of those who have keys: what one has used, another may use.
uint64_t NewIvOwner();
// Forgets what it has used, and gives its share to the others.
void EndIvOwner(uint64_t owner);

// Whether the key has used this IV, under any of the identities that it goes by.
bool IvUsed(uint64_t owner, const std::vector<KeyIdentity>& identities, const uint8_t* iv, size_t length);
// Marks an IV as used by a key. False when it was: nothing may be encrypted with it then.
bool ClaimIv(uint64_t owner, const std::vector<KeyIdentity>& identities, const uint8_t* iv, size_t length);

// IVs in one table of an owner, of which it has two: when the newer one is full, the older one is
// forgotten. They share kMostIvs, and none has fewer than kLeastIvs. An owner who has more when
// another one comes keeps them until its newer table is full, so that both tables of all have at
// most twice what they share.
constexpr size_t kMostIvs = size_t{1} << 20;
constexpr size_t kLeastIvs = size_t{1} << 12;
size_t IvsEach(size_t owners);

}  // namespace dke
