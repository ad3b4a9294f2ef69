# dld in a container for x86_64: docs/guides/targets.md. Run in the root of a clone:
#   docker build -f containers/x86_64.Dockerfile --build-arg BASE=IMAGE -t dld .
# BASE: a Debian or Ubuntu image with Python 3.10 or newer, such as a TensorRT image.
ARG BASE
FROM ${BASE}
ARG EXTRAS=gpu

RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
      python3 python3-pip python3-venv \
 && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE NOTICE.md /opt/dld/source/
COPY requirements /opt/dld/source/requirements
COPY share /opt/dld/source/share
COPY src /opt/dld/source/src

# The environment sees the TensorRT of the image. NVIDIA's images pin packages in PIP_CONSTRAINT,
# which must not apply to this environment.
RUN python3 -m venv --system-site-packages /opt/dld/venv \
 && PIP_CONSTRAINT= /opt/dld/venv/bin/python -m pip install --no-cache-dir \
      --constraint /opt/dld/source/requirements/constraints.txt "/opt/dld/source[${EXTRAS}]"

ENV PATH=/opt/dld/venv/bin:${PATH} COLORTERM=truecolor
WORKDIR /work
CMD ["dld"]
