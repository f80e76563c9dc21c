/* Ends one pass over all.def. Included several times: no guard. */
#undef MESSAGE
#undef FIELD
#undef INLINE
#undef SIZED
#undef LIST
#undef LIST8
#undef TIMES
#undef CHAIN
#undef UNTIL_END
#undef ZEROS
#undef END
