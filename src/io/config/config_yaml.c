/* Parses YAML text into a tree of nodes with their lines and columns, from libyaml's events.
 *
 * Scalars, lists and mappings are accepted. Anything that makes a study file mean something other than it
 * seems to (anchors, tags, a second document, a duplicate key, control characters) is refused. */
#include "io/config/config_internal.h"

#include <string.h>
#include <yaml.h>

typedef struct {
  yaml_parser_t *parser;
  Arena *memory;
  const char *source;
  bool lines;
} Reader;

/* One event, after libyaml's memory for it has been freed. */
typedef struct {
  yaml_event_type_t type;
  ConfigPlace place;
  const char *text;
  bool plain;
} Event;

static ConfigPlace config_yaml_place_of(const Reader *reader, yaml_mark_t mark) {
  ConfigPlace place = {.source = reader->source};
  if (reader->lines) {
    place.line = (int)mark.line + 1;
    place.column = (int)mark.column + 1;
  }
  return place;
}

/* Returns the character at *text and advances *text. libyaml returns only valid UTF-8. */
static uint32_t next_character(const unsigned char **text) {
  uint32_t c = *(*text)++;
  int more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
  if (more > 0) c &= 0x3Fu >> more;
  for (; more > 0; more--) c = c << 6 | (*(*text)++ & 0x3F);
  return c;
}

/* Returns whether a character cannot be shown or written back as it is (controls, line separators, byte order
 * mark, non-characters), or changes the reading direction of the text after it, which can make it seem to say
 * something else. */
static bool unprintable(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF || c == 0xFFFE ||
         c == 0xFFFF || c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

static Status config_yaml_take_event(Reader *reader, const yaml_event_t *raw, Event *event) {
  const void *anchor = NULL, *tag = NULL;
  *event = (Event){.type = raw->type, .place = config_yaml_place_of(reader, raw->start_mark)};
  switch (raw->type) {
  case YAML_ALIAS_EVENT: anchor = raw->data.alias.anchor; break;
  case YAML_SCALAR_EVENT: anchor = raw->data.scalar.anchor, tag = raw->data.scalar.tag; break;
  case YAML_SEQUENCE_START_EVENT:
    anchor = raw->data.sequence_start.anchor, tag = raw->data.sequence_start.tag;
    break;
  case YAML_MAPPING_START_EVENT:
    anchor = raw->data.mapping_start.anchor, tag = raw->data.mapping_start.tag;
    break;
  default: break;
  }
  if (anchor)
    return config_refuse(event->place,
                         "YAML anchors and aliases (& and *) are not allowed; write the value out");
  if (tag)
    return config_refuse(event->place, "YAML tags (!) are not allowed; quote text that starts with one");
  if (raw->type != YAML_SCALAR_EVENT) return STATUS_OK;
  const unsigned char *value = raw->data.scalar.value, *end = value + raw->data.scalar.length;
  if (raw->data.scalar.length > CONFIG_SCALAR_LIMIT)
    return config_refuse(event->place, "a value of %zu bytes; at most %d are allowed",
                         raw->data.scalar.length, CONFIG_SCALAR_LIMIT);
  for (const unsigned char *c = value; c < end;) {
    uint32_t character = next_character(&c);
    if (unprintable(character))
      return config_refuse(event->place,
                           "text must be on one line and without control characters; U+%04X is one",
                           (unsigned)character);
  }
  event->plain = raw->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  return arena_print(reader->memory, &event->text, "%s", (const char *)value);
}

static Status config_yaml_next_event(Reader *reader, Event *event) {
  yaml_event_t raw;
  yaml_parser_t *parser = reader->parser;
  if (!yaml_parser_parse(parser, &raw)) {
    const char *problem = parser->problem ? parser->problem : "unknown problem";
    if (parser->error == YAML_MEMORY_ERROR)
      return status_set(STATUS_INTERNAL, "%s: out of memory", reader->source);
    if (parser->error == YAML_READER_ERROR)
      return config_refuse((ConfigPlace){.source = reader->source}, "not UTF-8 text: %s (byte %zu)", problem,
                           parser->problem_offset);
    return config_refuse(config_yaml_place_of(reader, parser->problem_mark), "not valid YAML: %s%s%s%s",
                         problem, parser->context ? " (" : "", parser->context ? parser->context : "",
                         parser->context ? ")" : "");
  }
  Status status = config_yaml_take_event(reader, &raw, event);
  yaml_event_delete(&raw);
  return status;
}

static Status read_node(Reader *reader, const Event *start, int depth, ConfigNode **out);

/* Reads children up to the event `end`; in a mapping each is preceded by its key. */
static Status read_children(Reader *reader, ConfigNode *parent, yaml_event_type_t end, int depth) {
  ConfigNode **link = &parent->first;
  for (;; parent->count++, link = &(*link)->next) {
    Event event, key = {.type = YAML_NO_EVENT};
    TRY(config_yaml_next_event(reader, &event));
    if (event.type == end) return STATUS_OK;
    if (parent->kind == NODE_MAPPING) {
      key = event;
      if (key.type != YAML_SCALAR_EVENT)
        return config_refuse(key.place, "a key must be a word, not a list or mapping");
      if (parent->count == CONFIG_MAPPING_LIMIT)
        return config_refuse(key.place, "more than %d keys in one mapping", CONFIG_MAPPING_LIMIT);
      const ConfigNode *twin = config_node_child(parent, key.text);
      if (twin)
        return config_refuse(key.place, "key '%s': given twice%s", config_shown(key.text).text,
                             reader->lines ? " in one mapping" : "");
      TRY(config_yaml_next_event(reader, &event));
    }
    TRY(read_node(reader, &event, depth + 1, link));
    (*link)->key = key.text;
    (*link)->key_place = key.place;
  }
}

static Status read_node(Reader *reader, const Event *start, int depth, ConfigNode **out) {
  if (depth > CONFIG_DEPTH_LIMIT)
    return config_refuse(start->place, "nested deeper than %d levels", CONFIG_DEPTH_LIMIT);
  ConfigNode *node;
  ALLOCATE(reader->memory, node, 1);
  *out = node;
  node->place = start->place;
  node->text = start->text;
  node->plain = start->plain;
  if (start->type == YAML_SCALAR_EVENT) return STATUS_OK;
  node->kind = start->type == YAML_MAPPING_START_EVENT ? NODE_MAPPING : NODE_SEQUENCE;
  return read_children(reader, node,
                       node->kind == NODE_MAPPING ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT, depth);
}

Status config_tree_parse(Arena *memory, const char *source, bool lines, const char *text, ConfigNode **out) {
  SCOPED(yaml_parser_t, parser, yaml_parser_delete);
  Reader reader = {.parser = &parser, .memory = memory, .source = source, .lines = lines};
  Event event;
  *out = NULL;
  const size_t length = strlen(text);
  if (length > CONFIG_TEXT_LIMIT)
    return config_refuse((ConfigPlace){.source = source}, "more than %d bytes of YAML", CONFIG_TEXT_LIMIT);
  if (!yaml_parser_initialize(&parser)) return status_set(STATUS_INTERNAL, "%s: out of memory", source);
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
  TRY(config_yaml_next_event(&reader, &event));
  ASSERT(event.type == YAML_STREAM_START_EVENT);
  TRY(config_yaml_next_event(&reader, &event));
  if (event.type == YAML_STREAM_END_EVENT) return STATUS_OK;
  TRY(config_yaml_next_event(&reader, &event));
  TRY(read_node(&reader, &event, 0, out));
  TRY(config_yaml_next_event(&reader, &event));
  ASSERT(event.type == YAML_DOCUMENT_END_EVENT);
  TRY(config_yaml_next_event(&reader, &event));
  if (event.type != YAML_STREAM_END_EVENT)
    return config_refuse(event.place, "a second YAML document starts here; one study is one document");
  return STATUS_OK;
}

Status config_tree_assignment(Arena *memory, const char *what, const char *text, ConfigNode **out) {
  const char *source, *key, *equals = strchr(text, '=');
  TRY(arena_print(memory, &source, "%s %s", what, config_shown(text).text));
  ConfigPlace place = {.source = source};
  if (!equals || equals == text) return config_refuse(place, "expected key=value");
  TRY(arena_print(memory, &key, "%.*s", (int)(equals - text), text));
  TRY(config_tree_parse(memory, source, false, equals + 1, out));
  if (!*out) {
    ALLOCATE(memory, *out, 1);
    **out = (ConfigNode){.kind = NODE_SCALAR, .place = place, .text = "", .plain = true};
  }
  (*out)->key = key;
  (*out)->key_place = place;
  return STATUS_OK;
}

bool config_node_null(const ConfigNode *node) {
  return node->kind == NODE_SCALAR && node->plain &&
         (!*node->text || strcmp(node->text, "null") == 0 || strcmp(node->text, "~") == 0);
}

const ConfigNode *config_node_child(const ConfigNode *node, const char *key) {
  const bool mapping = node && node->kind == NODE_MAPPING;
  for (const ConfigNode *child = mapping ? node->first : NULL; child; child = child->next)
    if (strcmp(child->key, key) == 0) return child;
  return NULL;
}
