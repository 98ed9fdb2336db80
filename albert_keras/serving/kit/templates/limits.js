// Refuses deeply nested JSON, which would end the process of the model server.
const LARGEST_DEPTH = 32;

function isTooDeep(body) {
  let depth = 0, inString = false;
  for (let position = 0; position < body.length; position++) {
    const byte = body[position];
    if (inString) {
      if (byte === 0x5c) position++; // after a backslash, the next byte is part of the string
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > LARGEST_DEPTH) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return false;
}

function check(request) {
  if (isTooDeep(request.requestBuffer || [])) {
    request.return(400, '{"error": "JSON is nested too deeply"}');
  } else {
    request.internalRedirect("@model_server");
  }
}

export default { check };
