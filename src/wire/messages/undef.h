/* Ends one pass over all.def. Included several times: no guard. */
#undef GROUP
#undef REQUEST
#undef RESPONSE
#undef FIELD
#undef ARRAY
#undef STRUCT
#undef TAGGED
#undef TAGGED_ARRAY
#undef TAGGED_STRUCT
#undef END
