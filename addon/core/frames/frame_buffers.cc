// The memory that every frame of a loop goes through: frames.h.
#include <string.h>
#include <sys/mman.h>

#include "frames/frame_loop.h"

namespace dke {

std::shared_ptr<FrameBuffers> FrameBuffers::Create(size_t max_frame) {
  constexpr size_t kPage = 4096;
  const size_t frame = (max_frame + kPage - 1) / kPage * kPage;
  const size_t size = frame + kPage + frame + kScratch + kBatch + kLane;
  void* region = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region == MAP_FAILED) return nullptr;
  madvise(region, size, MADV_DONTDUMP);
  std::shared_ptr<FrameBuffers> buffers(new FrameBuffers);
  buffers->region_ = region;
  buffers->region_size_ = size;
  buffers->request_ = static_cast<uint8_t*>(region);
  buffers->reply_ = buffers->request_ + frame + kPage;
  buffers->scratch_ = buffers->reply_ + frame;
  buffers->batch_ = buffers->scratch_ + kScratch;
  buffers->lane_ = buffers->batch_ + kBatch;
  return buffers;
}

FrameBuffers::~FrameBuffers() {
  if (region_ == nullptr) return;
  explicit_bzero(region_, region_size_);
  munmap(region_, region_size_);
}

}  // namespace dke
