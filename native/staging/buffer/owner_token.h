#ifndef WORKBENCH_STAGING_BUFFER_OWNER_TOKEN_H_
#define WORKBENCH_STAGING_BUFFER_OWNER_TOKEN_H_

#include <cstdint>

namespace workbench {

// A session that runs a stage, stops it and runs it again owns the buffer by one token a run. The
// low bits name the session and the stage, the high bits number the run.
// In workbench/core/session/running/stage_run.py.
constexpr int kFamilyBits = 40;

inline int64_t FamilyOf(int64_t token) { return token & ((int64_t{1} << kFamilyBits) - 1); }
inline int64_t RunOf(int64_t token) { return token >> kFamilyBits; }

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_OWNER_TOKEN_H_
