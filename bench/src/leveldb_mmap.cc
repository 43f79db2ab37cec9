// Lets LEVELDB_MMAP_LIMIT say how many tables db_bench reads through mappings at a
// time; LevelDB itself takes 1000 on 64-bit machines, and with 0 reads them all
// with pread. db_bench has no flag for it. LevelDB's own tests set the limit
// through EnvPosixTestHelper, which lets in only the class of this name; it has to
// happen before the environment exists, so before main.
#include <cstdlib>

#include "util/env_posix_test_helper.h"

namespace leveldb {

class EnvPosixTest {
 public:
  EnvPosixTest() {
    if (const char* limit = std::getenv("LEVELDB_MMAP_LIMIT"))
      EnvPosixTestHelper::SetReadOnlyMMapLimit(std::atoi(limit));
  }
};

static EnvPosixTest set_mmap_limit;

}  // namespace leveldb
