// The bcryptprimitives.dll that Wine before 9 lacks. Rust's standard library takes the seeds of its hash tables from it.

#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *bytes, SIZE_T length) {
  return RtlGenRandom(bytes, (ULONG)length);
}
