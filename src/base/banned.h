/* banned.h: makes unsafe functions a compile error. The build includes it in every .c file. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CSN_BANNED(f) csn_banned_##f##_see_banned_h

#undef strcpy
#define strcpy(...) CSN_BANNED(strcpy)
#undef strcat
#define strcat(...) CSN_BANNED(strcat)
#undef strncpy
#define strncpy(...) CSN_BANNED(strncpy)
#undef sprintf
#define sprintf(...) CSN_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) CSN_BANNED(vsprintf)
#undef strtok
#define strtok(...) CSN_BANNED(strtok)
#undef atoi
#define atoi(...) CSN_BANNED(atoi)
#undef gmtime
#define gmtime(...) CSN_BANNED(gmtime)
#undef localtime
#define localtime(...) CSN_BANNED(localtime)
#undef system
#define system(...) CSN_BANNED(system)
#undef popen
#define popen(...) CSN_BANNED(popen)
#undef mktemp
#define mktemp(...) CSN_BANNED(mktemp)
#undef strerror
#define strerror(...) CSN_BANNED(strerror)
#undef alloca
#define alloca(...) CSN_BANNED(alloca)
