// The one script that the server runs: each call does its step, then drops the tickets whose time is over and grants the first.
//
// Keys, all in one hash slot: a sorted set of tickets by their place in line, a hash of what is known of each, a hash of the name
// (fence, next place, mark). A ticket is granted if its fence is set. Its deadline is the server's time of the last word of its
// client, and one lease more: a grant does not touch it. Time is that of the server only.
//
// Who is granted by another's call is told on the channel of its session (fence, mark, ticket), which may lose it: the renewals of
// those who wait say it again.

const { createHash } = require('node:crypto');

/** Verbs. */
exports.ENQUEUE = 'enqueue';
exports.RENEW = 'renew';
exports.RELEASE = 'release';
exports.TRY = 'try';
exports.CLEAR = 'clear';

const SCRIPT = `
local line, tickets, name = KEYS[1], KEYS[2], KEYS[3]
local verb, id, lease, shared, session, mark = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local micros = string.format('%d%06d', clock[1], clock[2])

local function read(ticket)
  local text = redis.call('HGET', tickets, ticket)
  if not text then return nil end
  local deadline, fence, kind, channel = string.match(text, '^(%d+) (%d+) (%d) (.*)$')
  return { deadline = tonumber(deadline), fence = fence, shared = kind == '1', channel = channel }
end
local function write(ticket, it)
  redis.call('HSET', tickets, ticket, string.format('%d %s %d %s', it.deadline, it.fence, it.shared and 1 or 0, it.channel))
end
local function drop(ticket)
  redis.call('ZREM', line, ticket)
  redis.call('HDEL', tickets, ticket)
end

-- Those whose time is over; one that held alone leaves its mark.
local function expire()
  for _, ticket in ipairs(redis.call('ZRANGE', line, 0, -1)) do
    local it = read(ticket)
    if not it then
      redis.call('ZREM', line, ticket)
    elseif it.deadline <= now then
      if it.fence ~= '0' and not it.shared then redis.call('HSET', name, 'mark', '1') end
      drop(ticket)
    end
  end
end

-- Larger than all before, and not below the clock: numbers of 16 digits, as text, since Lua's own are exact to 2^53 only.
local function next_fence()
  local last = redis.call('HGET', name, 'fence') or '0'
  local fence = micros
  if #last > #fence or (#last == #fence and last >= fence) then
    redis.call('HSET', name, 'fence', last)
    redis.call('HINCRBY', name, 'fence', 1)
    fence = redis.call('HGET', name, 'fence')
  else
    redis.call('HSET', name, 'fence', fence)
  end
  return fence
end

-- The first, and behind a shared one the shared ones next to it.
local function grant()
  local is_first, all_shared = true, true
  for _, ticket in ipairs(redis.call('ZRANGE', line, 0, -1)) do
    local it = read(ticket)
    if not (is_first or (all_shared and it.shared)) then break end
    if it.fence == '0' then
      it.fence = next_fence()
      write(ticket, it)
      if ticket ~= id then
        redis.call('PUBLISH', it.channel, it.fence .. ' ' .. (redis.call('HGET', name, 'mark') or '0') .. ' ' .. ticket)
      end
    end
    is_first = false
    all_shared = all_shared and it.shared
    if not it.shared then break end
  end
end

expire()
local it = read(id)
if verb == 'release' then
  if it then drop(id) end
  if mark == 'set' and it and it.fence ~= '0' then redis.call('HSET', name, 'mark', '1') end
elseif verb == 'clear' then
  if it and it.fence ~= '0' then redis.call('HDEL', name, 'mark') end
elseif verb == 'renew' then
  if it then
    it.deadline = now + lease
    write(id, it)
  end
elseif it then
  it.deadline = now + lease
  write(id, it)
else
  local place = redis.call('HINCRBY', name, 'place', 1)
  redis.call('ZADD', line, place, id)
  write(id, { deadline = now + lease, fence = '0', shared = shared == '1', channel = session })
end
grant()

it = read(id)
if verb == 'try' and it and it.fence == '0' then
  drop(id)
  it = nil
  grant()
end

-- A mark stays, and so does who holds alone and may leave one: nobody may come for longer than a day.
local first = redis.call('ZRANGE', line, 0, 0)[1]
local head = first and read(first)
local stays = redis.call('HGET', name, 'mark') or (head and head.fence ~= '0' and not head.shared)
for _, key in ipairs(KEYS) do
  if stays then redis.call('PERSIST', key) else redis.call('EXPIRE', key, 86400 + math.ceil(lease / 1000)) end
end

-- When the one before it will be gone, if that is not renewed.
local soonest = 0
if it and it.fence == '0' then
  for _, ticket in ipairs(redis.call('ZRANGE', line, 0, -1)) do
    local other = read(ticket)
    if ticket == id then break end
    local left = other.deadline - now
    if soonest == 0 or left < soonest then soonest = left end
  end
end
return { it and 1 or 0, it and it.fence or '0', redis.call('HGET', name, 'mark') or '0', soonest }
`;

exports.SCRIPT = SCRIPT;
exports.SHA = createHash('sha1').update(SCRIPT).digest('hex');

/** What is known of a ticket. */
exports.readTicket = (text) => {
  const [, deadline, fence, kind, session] = /^(\d+) (\d+) (\d) (.*)$/s.exec(String(text));
  return { deadline: Number(deadline), isGranted: fence !== '0', isShared: kind === '1', session };
};
